#include "daemon/sinogram/line_bins.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>

#include "config/scanner/arrangement.hpp"
#include "config/shape/extent.hpp"

namespace petacq::sinogram {
namespace {

/// Part of a bin: lines that lie on an edge, apart from rounding, belong to the bin above it.
constexpr double edge = 1e-9;
constexpr std::size_t max_in_table = std::size_t{1} << 22U;
constexpr double most = 1U << 16U;  ///< bins of one kind
/// Rounding must not part crystals of one column.
constexpr double steps_per_mm = 1e4;
constexpr double steps_of_direction = 1e6;

}  // namespace

LineBins::LineBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                   std::uint32_t angles, std::uint32_t radial)
    : angles_(angles),
      radial_(radial),
      radius_(config::extent_of(scanner).front_radius_mm),
      lines_(scanner, depth) {
    find_columns(scanner);
    const std::uint32_t n = columns();
    if (std::size_t{n} * n > max_in_table) return;
    std::vector<std::uint32_t> table;
    table.reserve(std::size_t{n} * n);
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b)
            table.push_back(line(a, b));
    }
    table_ = std::move(table);
}

/// By position, direction and layer, since lines end at a depth of the layer.
void LineBins::find_columns(const config::Scanner& scanner) {
    const auto arrangement = config::arrangement_of(scanner);
    std::map<std::tuple<const config::CrystalLayer*, std::array<std::int64_t, 5>>, std::uint32_t> columns;
    const auto rounded = [](double value) { return static_cast<std::int64_t>(std::llround(value)); };
    const auto z = [&](std::uint32_t crystal) { return std::abs(lines_.places[crystal].front_centre_mm[2]); };
    for (std::uint32_t crystal = 0; crystal < lines_.places.size(); ++crystal) {
        const config::CrystalPlace& place = lines_.places[crystal];
        std::array<std::int64_t, 5> key{};
        for (std::size_t axis = 0; axis < 2; ++axis)
            key.at(axis) = rounded(place.front_centre_mm.at(axis) * steps_per_mm);
        for (std::size_t axis = 0; axis < 3; ++axis)
            key.at(2 + axis) = rounded(place.outward.at(axis) * steps_of_direction);
        const auto [found, fresh] = columns.emplace(std::tuple(&arrangement->layer_of(crystal), key),
                                                    static_cast<std::uint32_t>(columns.size()));
        const std::uint32_t column = found->second;
        column_of_.push_back(column);
        if (fresh) middles_.push_back(crystal);
        if (z(crystal) < z(middles_[column]) - 1 / steps_per_mm) middles_[column] = crystal;
    }
}

std::uint32_t LineBins::angles_of(const config::Scanner& scanner) {
    if (scanner.is_ring()) return std::max(1U, scanner.geometry.crystals_in_ring() / 2);
    const config::Extent extent = config::extent_of(scanner);
    const double angles = std::round(std::numbers::pi * extent.front_radius_mm / extent.transaxial_pitch_mm);
    return static_cast<std::uint32_t>(std::clamp(angles, 1.0, most));
}

std::uint32_t LineBins::radial_of(const config::Scanner& scanner, double width_mm) {
    const double columns = std::round(2 * config::extent_of(scanner).front_radius_mm / width_mm);
    return static_cast<std::uint32_t>(std::clamp(columns, 1.0, most));
}

std::uint32_t LineBins::rows_turned(double radians) const {
    const auto rows = std::llround(config::within_turn(radians) / std::numbers::pi * angles_);
    return static_cast<std::uint32_t>(rows) % rows_of_turn();
}

std::uint32_t LineBins::line(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return outside;
    if (a > b) std::swap(a, b);  // rounding must not depend on which comes first
    constexpr double pi = std::numbers::pi;
    const auto [from, to] = lines_.ends(middles_[a], middles_[b]);
    double phi = std::atan2(from[0] - to[0], to[1] - from[1]);  // of the normal
    if (phi < 0) phi += pi;
    if (phi >= pi - edge) phi -= pi;
    const double s = from[0] * std::cos(phi) + from[1] * std::sin(phi);
    const auto row = std::min(static_cast<std::uint32_t>(phi * (angles_ / pi) + edge), angles_ - 1);
    const double column = std::floor((s + radius_) * (radial_ / (2 * radius_)) + edge);
    if (column < 0 || column >= radial_) return outside;
    return row * radial_ + static_cast<std::uint32_t>(column);
}

}  // namespace petacq::sinogram
