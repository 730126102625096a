// The peaks of a flood map.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

struct FloodPeak {
    FloodPoint at;
    double height = 0;  ///< above its surroundings, relative to them
};

struct FloodPeaks {
    FloodPoint pitch;  ///< mean distance of crystals along x and y, from the extent of the counts
    std::vector<FloodPeak> peaks;
};

/// Divides the flood map, smoothed over a fifth of a pitch, by its mean over half a pitch, and finds the
/// local maxima that stand out of the noise of the counts. None in an empty map.
FloodPeaks flood_peaks(const FloodShape& shape, std::span<const std::uint32_t> flood);

}  // namespace petacq::petcal
