// The flood map of a detector unit: what the steps of its crystal map have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/flood_layout.hpp"

namespace petacq::petcal {

/// A flood map is an array of counts [y][x], size by size. Its crystals lie in `rows` rows along x of
/// `columns` crystals each; "origin" is row * columns + column, the value of the position table.
struct FloodShape {
    std::uint32_t size = 0;
    std::uint32_t columns = 0;
    std::uint32_t rows = 0;
    std::uint16_t outside = config::outside_crystals({});  ///< of the scanner; as given: of small units

    [[nodiscard]] std::size_t positions() const { return std::size_t{size} * size; }
    [[nodiscard]] std::uint32_t crystals() const { return columns * rows; }
};

/// Of a unit with one layer its own. Of layers side by side, that of one grid whose crystals are as large as
/// the smallest of them.
inline FloodShape flood_shape(const config::Scanner& scanner, std::uint32_t unit) {
    const config::FloodLayout layout(scanner, unit);
    FloodShape shape{scanner.geometry.position_size, 0, 0, config::outside_crystals(scanner.geometry)};
    for (const config::FloodLayout::Layer& layer : layout.layers()) {
        shape.columns = std::max(shape.columns, layout.fields_across() * layer.columns);
        shape.rows = std::max(shape.rows, layout.fields_down() * layer.rows);
    }
    return shape;
}

/// A place in a flood map; the middle of position (x, y) is at (x, y).
struct FloodPoint {
    double x = 0;
    double y = 0;
};

/// Places, or distances, by origin.
using FloodPoints = std::vector<FloodPoint>;

}  // namespace petacq::petcal
