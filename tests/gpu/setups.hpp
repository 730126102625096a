// Random scanners: odd geometries with matching calibrations, and frames for a given crystal.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/gpu/reference.hpp"

namespace petacq::test {

/// A place of the position table.
struct Place {
    std::uint16_t bdm = 0;
    std::uint8_t du = 0;
    std::uint8_t x = 0;
    std::uint8_t y = 0;
};

struct Setup {
    config::FrameVersion frame_version = config::FrameVersion::one;
    config::Geometry geometry;
    config::Calibration calibration;
    std::uint8_t head_marker = 0xA;
    std::uint8_t tail_marker = 0x5;
    std::uint8_t tag_marker = 0xB;
    std::vector<std::vector<Place>> places;  ///< [crystal] places that name it; at least one
    std::vector<Place> outside;              ///< places that name no crystal; may be empty
};

/// Of the short form of a scanner description.
Setup random_setup(Rng& rng);
/// The same for a scanner of the long form. It has units of different sizes, and some that do not exist.
Setup random_long_setup(Rng& rng);

/// A requested single. The calibration turns the ADC value into its energy.
struct Wanted {
    std::uint64_t time = 0;  ///< corrected, ticks
    std::uint32_t crystal = 0;
    std::uint16_t adc = 0;
};

/// A frame that converts to the wanted single; none when its raw time would leave 64 bits.
std::optional<RawFrame> frame_for(const Setup& setup, const Wanted& wanted, Rng& rng);

/// A tag at a raw time. Often it equals another one in some of its fields.
RawFrame tag_frame(const Setup& setup, std::uint64_t time, Rng& rng);

/// A good frame near `time` with one random defect, which is almost always rejected.
RawFrame broken_frame(const Setup& setup, std::uint64_t time, Rng& rng);

}  // namespace petacq::test
