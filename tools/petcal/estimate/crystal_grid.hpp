// Which crystal each peak of a flood map belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/flood.hpp"
#include "tools/petcal/estimate/flood_peaks.hpp"

namespace petacq::petcal {

/// A place that a person gave: it overrules what is found.
struct KnownSpot {
    std::uint32_t origin = 0;
    FloodPoint at;
};

struct CrystalGrid {
    FloodPoints spots;                ///< the peak; where there is none, the place that the others predict
    std::vector<std::uint8_t> found;  ///< by origin: whether there is a peak, or a place that a person gave
    std::vector<std::uint8_t> known;  ///< by origin: whether a person gave the place
    FloodPoint pitch;                 ///< mean
    double bend = 0;                  ///< rms distance of the peaks from a smooth grid, in pitches
};

/// Follows the peaks from the middle outwards, crystal by crystal, and fits a smooth grid, which then says
/// which peak belongs to which crystal. With too few peaks `spots` is empty.
CrystalGrid assign_peaks(const FloodShape& shape, const FloodPeaks& peaks,
                         std::span<const KnownSpot> known = {});

/// The places that a smooth grid through the `found` ones predicts, corrected by how far the neighbours lie
/// off that grid. Empty when these do not determine a grid.
FloodPoints predicted_spots(const FloodShape& shape, const FloodPoints& spots,
                            const std::vector<std::uint8_t>& found, const FloodPoint& pitch);

}  // namespace petacq::petcal
