#include "tools/petcal/estimate/crystal_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "config/base/constants.hpp"
#include "config/calibration.hpp"
#include "tools/petcal/estimate/flood_peaks.hpp"
#include "tools/petcal/estimate/spot_fit.hpp"

namespace petacq::petcal {

namespace {

std::string number(double value, int decimals) {
    return fmt::format("{:.{}f}", value, decimals);
}

/// An outermost row or column without a peak: nobody knows then where the grid of crystals begins.
std::string empty_edge(const FloodShape& shape, const std::vector<std::uint8_t>& found) {
    std::vector<std::uint32_t> in_column(shape.columns);
    std::vector<std::uint32_t> in_row(shape.rows);
    for (std::uint32_t origin = 0; origin < found.size(); ++origin) {
        in_column[origin % shape.columns] += found[origin];
        in_row[origin / shape.columns] += found[origin];
    }
    if (in_column.front() == 0) return "column 0";
    if (in_column.back() == 0) return "column " + std::to_string(shape.columns - 1);
    if (in_row.front() == 0) return "row 0";
    if (in_row.back() == 0) return "row " + std::to_string(shape.rows - 1);
    return "";
}

std::string why_refused(const FloodShape& shape, const UnitMap& map) {
    const MapQuality& q = map.quality;
    const double each = q.counts / shape.crystals();
    if (each < min_counts) {
        return "expected at least " + number(min_counts, 0) + " counts per crystal, found " + number(each, 1);
    }
    if (q.peaks < min_peaks * shape.crystals()) {
        return "expected peaks of at least " + number(std::ceil(min_peaks * shape.crystals()), 0) + " of " +
               std::to_string(shape.crystals()) + " crystals, found " + std::to_string(q.peaks);
    }
    const std::string edge = empty_edge(shape, map.found);
    if (!edge.empty()) return "expected peaks in every outer row and column, found none in " + edge;
    const bool wide_x = shape.columns > 1 && q.separation_x < min_separation;
    const bool wide_y = shape.rows > 1 && q.separation_y < min_separation;
    if (wide_x || wide_y) {
        return "expected a separation (pitch / FWHM) of at least " + number(min_separation, 2) + ", found " +
               number(wide_x ? q.separation_x : q.separation_y, 2) + " along " + (wide_x ? "x" : "y");
    }
    if (q.bend > max_bend) {
        return "expected peaks within " + number(max_bend, 2) + " pitches of a smooth grid (rms), found " +
               number(q.bend, 2);
    }
    return "";
}

/// The counts between spots and outside all of them, as shares.
void count_places(const FloodShape& shape, std::span<const std::uint32_t> flood, const SpotFit& fit,
                  UnitMap& map) {
    constexpr double near = 0.35;
    double between = 0;
    double outside = 0;
    for (std::size_t y = 0; y < shape.size; ++y) {
        for (std::size_t x = 0; x < shape.size; ++x) {
            const std::size_t at = x + y * shape.size;
            const std::size_t origin = map.table[at];
            if (origin >= fit.spots.size()) {
                outside += flood[at];
                continue;
            }
            const double dx = (static_cast<double>(x) - fit.spots[origin].x) / fit.pitch[origin].x;
            const double dy = (static_cast<double>(y) - fit.spots[origin].y) / fit.pitch[origin].y;
            if (std::abs(dx) > near || std::abs(dy) > near) between += flood[at];
        }
    }
    map.quality.between_peaks = between / map.quality.counts;
    map.quality.outside = outside / map.quality.counts;
}

}  // namespace

std::vector<std::uint16_t> nearest_spots(const FloodShape& shape, const FloodPoints& spots,
                                         const FloodPoints& pitch) {
    const std::uint16_t none = shape.outside;
    const bool all_inside = none < shape.crystals();
    const double reach = all_inside ? 2.0 * shape.size : 1;
    std::vector<std::uint16_t> table(shape.positions(), none);
    std::vector<double> nearest(shape.positions(), std::numeric_limits<double>::infinity());
    const double last = shape.size - 1.0;
    const auto index = [&](double v) { return static_cast<std::size_t>(std::clamp(v, 0.0, last)); };
    for (std::size_t origin = 0; origin < spots.size(); ++origin) {
        const FloodPoint& spot = spots[origin];
        const FloodPoint& step = pitch[origin];
        const std::size_t to_x = index(std::floor(spot.x + reach * step.x));
        const std::size_t to_y = index(std::floor(spot.y + reach * step.y));
        for (std::size_t y = index(std::ceil(spot.y - reach * step.y)); y <= to_y; ++y) {
            for (std::size_t x = index(std::ceil(spot.x - reach * step.x)); x <= to_x; ++x) {
                const double dx = (static_cast<double>(x) - spot.x) / step.x;
                const double dy = (static_cast<double>(y) - spot.y) / step.y;
                double& best = nearest[x + y * shape.size];
                if (dx * dx + dy * dy >= best) continue;
                best = dx * dx + dy * dy;
                table[x + y * shape.size] = static_cast<std::uint16_t>(origin);
            }
        }
    }
    return table;
}

UnitMap derive_unit_map(const FloodShape& shape, std::span<const std::uint32_t> flood,
                        std::span<const KnownSpot> known) {
    UnitMap map;
    map.quality.counts = std::accumulate(flood.begin(), flood.end(), 0.0);
    map.found.assign(shape.crystals(), 0);
    const CrystalGrid grid = assign_peaks(shape, flood_peaks(shape, flood), known);
    if (grid.spots.empty()) {
        map.refused = why_refused(shape, map);
        return map;
    }
    const SpotFit fit = fit_spots(shape, flood, grid);
    map.spots = fit.spots;
    map.found = grid.found;
    map.table = nearest_spots(shape, fit.spots, fit.pitch);
    map.quality.peaks =
        static_cast<std::uint32_t>(std::count(map.found.begin(), map.found.end(), std::uint8_t{1}));
    map.quality.separation_x = 1 / (config::fwhm_per_sigma * fit.width.x);
    map.quality.separation_y = 1 / (config::fwhm_per_sigma * fit.width.y);
    map.quality.bend = grid.bend;
    count_places(shape, flood, fit, map);
    map.refused = why_refused(shape, map);
    return map;
}

}  // namespace petacq::petcal
