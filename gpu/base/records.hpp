// Singles, coincidences and tags: the kinds of records that leave the pipeline. All are plain structs,
// little-endian in memory, and list-mode files store them unchanged.
#pragma once

#include <cstdint>

#include "net/base/record_vector.hpp"

namespace petacq::gpu {

using net::RecordVector;

/// A converted hit.
struct Single {
    std::uint64_t time = 0;  ///< ticks
    std::uint32_t crystal = 0;
    float energy = 0;  ///< keV
};
static_assert(sizeof(Single) == 16);

enum class Kind : std::uint32_t { prompt = 0, delayed = 1 };

/// A pair of singles, a before b in the order (time, crystal, energy).
struct Coincidence {
    std::uint64_t time = 0;  ///< ticks, of a
    std::uint32_t dt = 0;    ///< ticks, time of b minus time of a; for a delayed, also minus the delay
    std::uint32_t crystal_a = 0;
    std::uint32_t crystal_b = 0;
    float energy_a = 0;  ///< keV
    float energy_b = 0;
    Kind kind = Kind::prompt;
};
static_assert(sizeof(Coincidence) == 32);

/// Where the third photon of a triple was looked for: at the time of its pair, or a fixed delay later, where
/// only chance puts one.
enum class ThirdPhoton : std::uint32_t { coincident = 0, delayed = 1 };

/// A pair and a gamma near it in time.
struct Triple {
    Coincidence pair;
    std::int32_t gamma_dt = 0;  ///< ticks, time of the gamma minus that of the pair; for a delayed gamma,
                                ///< also minus the delay of the gammas
    std::uint32_t gamma_crystal = 0;
    float gamma_energy = 0;  ///< keV
    ThirdPhoton third = ThirdPhoton::coincident;
};
static_assert(sizeof(Triple) == 48);

/// What a tag says. Other numbers are kept and counted, too.
enum class TagKind : std::uint8_t {
    trigger = 0,    ///< value: running number, or 0
    gate = 1,       ///< value: 1 opens, 0 closes
    position = 2,   ///< value: i32, micrometres
    dead_time = 3,  ///< value: ticks in which the source was blind since its previous such tag
    clock = 4,      ///< value: that of an outside clock
};

/// A mark in detector time that is no hit. Tags are in the order (time, source, channel, kind, value).
struct Tag {
    std::uint64_t time = 0;  ///< ticks, as sent
    std::uint32_t value = 0;
    /// Sequenced framing: the id of the source. Bare framing: the position of the source in the list of
    /// sources, or no_source.
    std::uint16_t source = 0;
    std::uint8_t channel = 0;  ///< 0..15
    std::uint8_t kind = 0;     ///< of TagKind, or another number

    static constexpr std::uint16_t no_source = 0xFFFF;
    bool operator==(const Tag&) const = default;
};
static_assert(sizeof(Tag) == 16);

}  // namespace petacq::gpu
