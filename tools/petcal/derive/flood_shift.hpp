// How far the spots of a flood map have moved since an earlier one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tools/petcal/derive/flood.hpp"

namespace petacq::petcal {

struct FloodShift {
    FloodPoint pitch;        ///< positions per crystal along x and y, from the extent of the counts
    FloodPoint shift;        ///< positions by which the map has moved
    FloodPoint stretch;      ///< positions by which its edges at high x and y have moved besides
    double largest = 0;      ///< displacement of a spot, in pitches
    double error = 0;        ///< its standard deviation by the counts
    bool converged = false;  ///< else it is larger than can be measured, about half a pitch
};

/// Fits shift and stretch of the earlier map, smoothed over a tenth of a pitch, to the later one: maximum
/// likelihood of Poisson counts, linearised and repeated. How the counts are spread over the crystals matters
/// little. A move by a whole pitch looks like none, except at the edges. None if either map has fewer than
/// least_flood_counts per crystal, or if it has no structure.
std::optional<FloodShift> flood_shift(const FloodShape& shape, std::span<const std::uint32_t> earlier,
                                      std::span<const std::uint32_t> later);

inline constexpr double least_flood_counts = 50;

}  // namespace petacq::petcal
