// The crystal map of a detector unit from its flood map.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/petcal/estimate/crystal_grid.hpp"
#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

/// Each position belongs to the nearest spot, by distances in pitches. One that is further away than a pitch
/// along x or y is outside (config::outside_crystals): the outermost crystals reach half a pitch beyond their
/// edge. With 256 crystals nothing is outside, as no value is left for it.
std::vector<std::uint16_t> nearest_spots(const FloodShape& shape, const FloodPoints& spots,
                                         const FloodPoints& pitch);

/// How good the map of a unit is.
struct MapQuality {
    double counts = 0;        ///< in the flood map
    std::uint32_t peaks = 0;  ///< crystals with a peak, or a place given by a person
    double separation_x = 0;  ///< pitch / FWHM of the spots
    double separation_y = 0;
    double between_peaks = 0;  ///< share of counts further than 0.35 pitch from the nearest spot in x or y
    double outside = 0;        ///< share of counts outside any crystal
    double bend = 0;           ///< rms distance of the peaks from a smooth grid, in pitches
};

struct UnitMap {
    std::vector<std::uint16_t> table;  ///< [x + y * size]: origin
    FloodPoints spots;                 ///< by origin
    std::vector<std::uint8_t> found;   ///< by origin: whether it has a peak
    MapQuality quality;
    std::string refused;  ///< what was expected and what was found; empty: the map can be used
};

/// What a flood map must have. With so few counts, maps of spots 0.3 pitches wide still give at most half a
/// percent fewer frames to their crystals than the best maps do.
inline constexpr double min_counts = 200;       ///< per crystal, mean
inline constexpr double min_peaks = 0.8;        ///< share of crystals
inline constexpr double min_separation = 1.05;  ///< spots with a width of 0.40 pitch
inline constexpr double max_bend = 0.25;        ///< pitches

/// `table` and `spots` are empty when no grid of crystals was found.
UnitMap derive_unit_map(const FloodShape& shape, std::span<const std::uint32_t> flood,
                        std::span<const KnownSpot> known = {});

}  // namespace petacq::petcal
