#include "tools/petcal/estimate/layered_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/flood_layout.hpp"

namespace petacq::petcal {

namespace {

using config::FloodLayout;

/// Positions from `low` to below `high`.
struct FieldRange {
    std::size_t low = 0;
    std::size_t high = 0;
};

/// Between fields of about equal width: where the fewest counts lie, over three positions, no further from
/// the middle between two than 0.6 of the width of the smallest crystals, of which `most` lie in a field. At
/// the ends the whole map.
std::vector<FieldRange> fields_of(const std::vector<double>& profile, std::uint32_t count,
                                  std::uint32_t most) {
    const std::size_t size = profile.size();
    const double width = static_cast<double>(size) / count;
    std::vector<FieldRange> fields(count, {0, size});
    for (std::uint32_t i = 1; i < count; ++i) {
        const double reach = 0.6 * width / most;
        const auto from = static_cast<std::size_t>(std::max(i * width - reach, 1.0));
        const auto to = std::min(static_cast<std::size_t>(i * width + reach), size - 2);
        double fewest = std::numeric_limits<double>::infinity();
        double nearest = 0;
        for (std::size_t at = from; at <= to; ++at) {
            const double counts = profile[at - 1] + profile[at] + profile[at + 1];
            const double off = std::abs(static_cast<double>(at) - i * width);
            if (counts > fewest || (counts == fewest && off >= nearest)) continue;
            fewest = counts;
            nearest = off;
            fields[i - 1].high = fields[i].low = at;
        }
    }
    return fields;
}

/// One layer of a unit, derived in a map of its own with its field in the middle.
class LayerMap {
  public:
    LayerMap(std::uint32_t size, const FloodLayout::Layer& layer, const FieldRange& x, const FieldRange& y)
        : shape_{size, layer.columns, layer.rows}, layer_(layer), x_(x), y_(y) {
        to_x_ =
            static_cast<std::ptrdiff_t>((size - (x.high - x.low)) / 2) - static_cast<std::ptrdiff_t>(x.low);
        to_y_ =
            static_cast<std::ptrdiff_t>((size - (y.high - y.low)) / 2) - static_cast<std::ptrdiff_t>(y.low);
    }

    [[nodiscard]] UnitMap derive(std::span<const std::uint32_t> flood,
                                 std::span<const KnownSpot> known) const {
        std::vector<std::uint32_t> own(shape_.positions());
        for_each_position([&](std::size_t in_unit, std::size_t in_own) { own[in_own] = flood[in_unit]; });
        std::vector<KnownSpot> in_layer;
        for (const KnownSpot& spot : known) {
            if (spot.origin < layer_.first || spot.origin >= layer_.first + shape_.crystals()) continue;
            in_layer.push_back(
                {other_way(spot.origin - layer_.first),
                 {spot.at.x + static_cast<double>(to_x_), spot.at.y + static_cast<double>(to_y_)}});
        }
        return derive_unit_map(shape_, own, in_layer);
    }
    /// Puts the map of the layer into that of the unit.
    void add(const UnitMap& layer, UnitMap& unit) const {
        if (layer.table.empty()) return;  // no grid of crystals was found
        for (std::uint32_t origin = 0; origin < layer.spots.size(); ++origin) {
            const std::uint32_t local = layer_.first + other_way(origin);
            unit.spots[local] = {layer.spots[origin].x - static_cast<double>(to_x_),
                                 layer.spots[origin].y - static_cast<double>(to_y_)};
            unit.found[local] = layer.found[origin];
        }
        for_each_position([&](std::size_t in_unit, std::size_t in_own) {
            const std::size_t origin = layer.table[in_own];
            if (origin >= shape_.crystals()) return;
            unit.table[in_unit] = static_cast<decltype(unit.table)::value_type>(
                layer_.first + other_way(static_cast<std::uint32_t>(origin)));
        });
    }

  private:
    /// Rows of the map run against y: from an origin to the number in the layer, and back.
    [[nodiscard]] std::uint32_t other_way(std::uint32_t number) const {
        return number % shape_.columns + (shape_.rows - 1 - number / shape_.columns) * shape_.columns;
    }
    template <class Use>
    void for_each_position(Use use) const {
        for (std::size_t y = y_.low; y < y_.high; ++y) {
            for (std::size_t x = x_.low; x < x_.high; ++x) {
                const auto own_x = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(x) + to_x_);
                const auto own_y = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(y) + to_y_);
                use(x + y * shape_.size, own_x + own_y * shape_.size);
            }
        }
    }

    FloodShape shape_;
    const FloodLayout::Layer& layer_;
    FieldRange x_;
    FieldRange y_;
    std::ptrdiff_t to_x_;
    std::ptrdiff_t to_y_;
};

/// The worst of both, and the counts of both.
void join_quality(const MapQuality& layer, MapQuality& unit) {
    const double counts = unit.counts + layer.counts;
    const auto share = [&](double of_unit, double of_layer) {
        return counts > 0 ? (of_unit * unit.counts + of_layer * layer.counts) / counts : 0;
    };
    const bool first = unit.counts == 0;
    unit.between_peaks = share(unit.between_peaks, layer.between_peaks);
    unit.outside = share(unit.outside, layer.outside);
    unit.separation_x = first ? layer.separation_x : std::min(unit.separation_x, layer.separation_x);
    unit.separation_y = first ? layer.separation_y : std::min(unit.separation_y, layer.separation_y);
    unit.bend = std::max(unit.bend, layer.bend);
    unit.peaks += layer.peaks;
    unit.counts = counts;
}

}  // namespace

UnitMap derive_map(const config::Scanner& scanner, std::uint32_t unit, std::span<const std::uint32_t> flood,
                   std::span<const KnownSpot> known) {
    const config::Geometry& g = scanner.geometry;
    if (scanner.is_ring()) return derive_unit_map(flood_shape(scanner, unit), flood, known);
    const FloodLayout layout(scanner, unit);
    const std::size_t size = g.position_size;
    std::vector<double> along_y(size);
    for (std::size_t i = 0; i < flood.size(); ++i)
        along_y[i / size] += flood[i];
    const FloodShape smallest = flood_shape(scanner, unit);
    const std::vector<FieldRange> rows =
        fields_of(along_y, layout.fields_down(), smallest.rows / layout.fields_down());
    UnitMap map;
    map.table.assign(flood.size(), config::outside_crystals(g));
    map.spots.resize(g.crystals_of_unit(unit));
    map.found.resize(map.spots.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        std::vector<double> along_x(size);
        for (std::size_t i = rows[row].low * size; i < rows[row].high * size; ++i)
            along_x[i % size] += flood[i];
        const std::vector<FieldRange> columns =
            fields_of(along_x, layout.fields_across(), smallest.columns / layout.fields_across());
        for (std::uint32_t column = 0; column < columns.size(); ++column) {
            const std::size_t number = row * columns.size() + column;
            if (number >= layout.layers().size()) continue;
            const LayerMap layer(g.position_size, layout.layers()[number], columns[column], rows[row]);
            const UnitMap found = layer.derive(flood, known);
            if (map.refused.empty() && !found.refused.empty()) {
                map.refused = (layout.layers().size() > 1 ? "layer " + std::to_string(number) + ": " : "") +
                              found.refused;
            }
            layer.add(found, map);
            join_quality(found.quality, map.quality);
        }
    }
    return map;
}

}  // namespace petacq::petcal
