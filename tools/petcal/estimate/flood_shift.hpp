// How far the spots of a flood map have moved since an earlier one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

struct FloodShift {
    FloodPoint pitch;        ///< positions per crystal along x and y, from the extent of the counts
    FloodPoint shift;        ///< positions by which the map has moved
    FloodPoint stretch;      ///< positions by which its edges at high x and y have moved besides
    double largest = 0;      ///< displacement of a spot, in pitches
    double error = 0;        ///< its standard deviation by the counts, or somewhat more
    bool converged = false;  ///< else it is larger than can be measured, about half a pitch
};

/// Fits shift and stretch of the earlier map to the later one, both smoothed over a tenth of a pitch: maximum
/// likelihood of Poisson counts, linearised and repeated. The earlier one is scaled to the mean of the later
/// one over half a pitch, so that crystals may count more or less than before. A move by a whole pitch looks
/// like none, except at the edges. None if either map has fewer than min_flood_counts per crystal, or if it
/// has no structure.
std::optional<FloodShift> flood_shift(const FloodShape& shape, std::span<const std::uint32_t> earlier,
                                      std::span<const std::uint32_t> later);

inline constexpr double min_flood_counts = 50;

}  // namespace petacq::petcal
