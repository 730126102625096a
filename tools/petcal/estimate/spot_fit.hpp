// The spots of a flood map as a sum of Gaussians.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/crystal_grid.hpp"
#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

struct SpotFit {
    FloodPoints spots;           ///< by origin: centres
    FloodPoints pitch;           ///< by origin: distances to the next spots, along x and y
    std::vector<double> counts;  ///< by origin: of its Gaussian
    FloodPoint width;            ///< standard deviation of all spots, in pitches
    double background = 0;       ///< share of the counts that belongs to no spot
};

/// Moves the spots of a grid to the centres of Gaussians of one relative width over a flat background: a fit
/// by expectation maximisation, which separates spots that overlap. Centres are drawn to the places that the
/// others predict, as strongly as spots scatter around these; weak spots and those without a peak take them.
/// Places that a person gave stay.
SpotFit fit_spots(const FloodShape& shape, std::span<const std::uint32_t> flood, const CrystalGrid& grid);

}  // namespace petacq::petcal
