// The flood map of a detector unit: what the steps of its crystal map have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/geometry.hpp"

namespace petacq::petcal {

/// A flood map is an array of counts [y][x], size by size. Its crystals lie in `rows` rows along x of
/// `columns` crystals each; "origin" is row * columns + column, the value of the position table.
struct FloodShape {
    std::uint32_t size = 0;
    std::uint32_t columns = 0;
    std::uint32_t rows = 0;

    [[nodiscard]] std::size_t positions() const { return std::size_t{size} * size; }
    [[nodiscard]] std::uint32_t crystals() const { return columns * rows; }
};

inline FloodShape flood_shape(const config::Geometry& g) {
    return {g.position_size, g.crystals.z, g.crystals.y};
}

/// A place in a flood map; the middle of position (x, y) is at (x, y).
struct FloodPoint {
    double x = 0;
    double y = 0;
};

/// Places, or distances, by origin.
using FloodPoints = std::vector<FloodPoint>;

}  // namespace petacq::petcal
