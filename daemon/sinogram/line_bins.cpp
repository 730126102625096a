#include "daemon/sinogram/line_bins.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace petacq::sinogram {
namespace {

/// Part of a bin: lines that lie on an edge, apart from rounding, belong to the bin above it.
constexpr double edge = 1e-9;
constexpr std::size_t max_in_table = std::size_t{1} << 22U;

}  // namespace

LineBins::LineBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                   std::uint32_t angles, std::uint32_t radial)
    : angles_(angles), radial_(radial), radius_(scanner.dimensions.ring_radius_mm), depth_(depth) {
    const std::uint32_t n = scanner.geometry.crystals_in_ring();
    for (std::uint32_t crystal = 0; crystal < n; ++crystal)
        ring_.push_back(config::crystal_place(scanner, crystal));
    if (std::size_t{n} * n > max_in_table) return;
    std::vector<std::uint32_t> table;
    table.reserve(std::size_t{n} * n);
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b)
            table.push_back(line(a, b));
    }
    table_ = std::move(table);
}

std::uint32_t LineBins::radial_of(const config::Scanner& scanner, double width_mm) {
    constexpr double most = 1U << 16U;
    const double columns = std::round(2 * scanner.dimensions.ring_radius_mm / width_mm);
    return static_cast<std::uint32_t>(std::clamp(columns, 1.0, most));
}

std::uint32_t LineBins::line(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return outside;
    if (a > b) std::swap(a, b);  // rounding must not depend on which comes first
    constexpr double pi = std::numbers::pi;
    const auto [from, to] = config::line_ends(ring_[a], ring_[b], depth_);
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
