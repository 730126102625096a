// What boards read out.
#pragma once

#include <cstdint>

namespace petacq::sim {

/// The origin of a hit; also the low bits of the flags of a truth record.
enum HitKind : std::uint8_t { hit_photon = 0x1, hit_scattered = 0x2, hit_intrinsic = 0x4, hit_dark = 0x8 };

/// What happened to a photon that was followed, before its hit (0 where photons are not followed), and to its
/// energy.
enum HitHistory : std::uint8_t {
    history_scatters = 0x0F,      ///< how often it scattered in the object, at most 15
    history_first_photon = 0x10,  ///< of the two of its annihilation
    history_second_photon = 0x20,
    history_gamma = 0x30,  ///< none of the two, but a gamma of the nuclide
    history_later = 0x40,  ///< its first energy went to another crystal
    history_gain_step = 0x80,
};
inline constexpr int history_photon_shift = 4;  ///< to TruthPhoton

/// An annihilation has a number below this; a decay of Lu-176 whose cascade is followed has one above.
inline constexpr std::uint64_t first_decay_number = std::uint64_t{1} << 63;

/// The highest number of a unit: of 65,536 modules of 16 units.
inline constexpr std::uint32_t max_unit = 0xF'FFFF;

/// A detected hit, as the board reads it out.
struct Hit {
    std::uint64_t raw_time;      ///< ticks, before the time offset
    std::uint64_t annihilation;  ///< 0: none
    std::uint32_t crystal;
    float energy;  ///< keV, as the calibration gives it for `adc`; with a true detector as it was measured
    std::uint16_t adc;
    std::uint8_t x;
    std::uint8_t y;
    std::uint32_t unit : 20;  ///< bdm * du_count + du
    std::uint32_t kind : 4;   ///< HitKind
    std::uint8_t history;     ///< with history_gain_step
};
static_assert(sizeof(Hit) == 32);

}  // namespace petacq::sim
