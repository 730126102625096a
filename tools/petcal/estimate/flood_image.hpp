// Smoothing of flood maps, and how far apart their crystals are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

/// [y][x], as a flood map.
using FloodImage = std::vector<double>;

/// Convolved with a Gaussian of these standard deviations, positions. Nothing lies outside the map.
FloodImage smoothed(const FloodImage& image, std::size_t size, const FloodPoint& sigma);

/// Mean distance of crystals along x and y, from the extent of the counts; at least one position.
FloodPoint flood_pitch(const FloodShape& shape, std::span<const std::uint32_t> flood);

}  // namespace petacq::petcal
