#include "config/flood_layout.hpp"

#include <algorithm>
#include <cmath>

#include "config/scanner/arrangement.hpp"

namespace petacq::config {

FloodLayout::FloodLayout(const Scanner& scanner, std::uint32_t unit) {
    const Geometry& g = scanner.geometry;
    if (scanner.is_ring()) {
        layers_.push_back({0, g.crystals.z, g.crystals.y});
        return;
    }
    // The crystals of a unit in a layer are a part of its grid, column by column.
    const std::uint32_t count = g.crystals_of_unit(unit);
    const auto address = [&](std::uint32_t local) {
        return scanner.arrangement->address(g.crystal(unit / g.du_count, unit % g.du_count, local));
    };
    for (std::uint32_t first = 0; first < count;) {
        const CrystalAddress begin = address(first);
        std::uint32_t rows = 1;  // of the module, along z
        const auto goes_on = [&](std::uint32_t local) {
            if (local >= count) return false;
            const CrystalAddress a = address(local);
            return a.module == begin.module && a.layer == begin.layer;
        };
        while (goes_on(first + rows) && address(first + rows).column == begin.column)
            ++rows;
        std::uint32_t columns = 1;
        while (goes_on(first + columns * rows))
            ++columns;
        layers_.push_back({first, rows, columns});
        first += columns * rows;
    }
    const auto layers = static_cast<std::uint32_t>(layers_.size());
    across_ = static_cast<std::uint32_t>(std::ceil(std::sqrt(layers)));
    down_ = (layers + across_ - 1) / across_;
}

const FloodLayout::Layer& FloodLayout::layer_of(std::uint32_t local) const {
    return *(std::upper_bound(layers_.begin(), layers_.end(), local,
                              [](std::uint32_t l, const Layer& layer) { return l < layer.first; }) -
             1);
}

FloodLayout::UnitPoint FloodLayout::point(std::uint32_t local, double columns, double rows) const {
    const Layer& layer = layer_of(local);
    const std::uint32_t in_layer = local - layer.first;
    const std::uint32_t row_of_layer = layer.rows - 1 - in_layer / layer.columns;
    const double column = in_layer % layer.columns + 0.5 + columns;
    const double row = row_of_layer + 0.5 + rows;
    const auto number = static_cast<std::uint32_t>(&layer - layers_.data());
    const std::uint32_t row_of_fields = number / across_;
    const double u = (number % across_ + column / layer.columns) / across_;
    const double v = (row_of_fields + row / layer.rows) / down_;
    return {2 * u - 1, 2 * v - 1};
}

}  // namespace petacq::config
