#include "tools/petcal/estimate/pairs/crystal_finder.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/scanner/arrangement.hpp"

namespace petacq::estimate {

namespace {

using config::Vector3;

constexpr double turn = 2 * std::numbers::pi;
// Layers lie one behind the other; crystals that are further apart are of different parts of the scanner.
constexpr double shadow = 1.5;
constexpr double half_size = 0.7;  // of a crystal: its half, and a part of the gap beside it

}  // namespace

CrystalFinder::CrystalFinder(const config::Scanner& scanner, double depth_mm) {
    for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i)
        points_.push_back(point_at_depth(crystal_place(scanner, i), depth_mm));
    if (scanner.is_ring()) {
        prepare_ring(scanner);
    } else {
        prepare_arrangement(scanner);
    }
}

void CrystalFinder::prepare_ring(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    columns_ = g.crystals_in_ring();
    nearest_.resize(std::size_t{bins_per_column} * columns_);
    for (std::size_t bin = 0; bin < nearest_.size(); ++bin) {
        const double angle = (static_cast<double>(bin) + 0.5) / static_cast<double>(nearest_.size()) * turn;
        double best = -INFINITY;
        for (std::uint32_t column = 0; column < columns_; ++column) {
            const double x = points_[column][0];
            const double y = points_[column][1];
            const double along = (x * std::cos(angle) + y * std::sin(angle)) / std::hypot(x, y);
            if (along <= best) continue;
            best = along;
            nearest_[bin] = column;
        }
    }
    reach_ = 0.7 * scanner.dimensions.crystal_pitch_z_mm + scanner.dimensions.block_gap_z_mm +
             scanner.dimensions.module_gap_z_mm;
    for (std::uint32_t ring = 0; ring < g.rings(); ++ring)
        z_.push_back(points_[std::size_t{ring} * columns_][2]);
}

void CrystalFinder::prepare_arrangement(const config::Scanner& scanner) {
    constexpr std::size_t bins = 1024;
    seen_.resize(bins);
    least_radius_ = INFINITY;
    const config::Arrangement& a = *scanner.arrangement;
    for (std::uint32_t i = 0; i < points_.size(); ++i) {
        const config::CrystalAddress at = a.address(i);
        const config::CrystalLayer& layer = a.layer_of(i);
        const Vector3& p = points_[i];
        const double radius = std::max(std::hypot(p[0], p[1]), 1e-3);
        const Seen seen{p[2] / radius,
                        std::atan2(p[1], p[0]),
                        radius,
                        std::min(half_size * layer.y.sizes[at.column] / radius, turn / 4),
                        half_size * layer.z.sizes[at.row],
                        i};
        least_radius_ = std::min(least_radius_, radius);
        largest_half_slope_ = std::max(largest_half_slope_, seen.half_z / radius);
        const auto middle = static_cast<std::ptrdiff_t>(bin_of(p));
        const auto count = static_cast<std::ptrdiff_t>(bins);
        const auto reach = 1 + static_cast<std::ptrdiff_t>(seen.half_angle / turn * bins);
        for (std::ptrdiff_t bin = middle - reach; bin <= middle + reach; ++bin)
            seen_[static_cast<std::size_t>((bin + count) % count)].push_back(seen);
    }
    for (std::vector<Seen>& bin : seen_)
        std::sort(bin.begin(), bin.end(), [](const Seen& p, const Seen& q) { return p.slope < q.slope; });
}

std::size_t CrystalFinder::bin_of(const Vector3& p) const {
    const std::size_t bins = columns_ > 0 ? nearest_.size() : seen_.size();
    const double turns = std::atan2(p[1], p[0]) / turn;
    return static_cast<std::size_t>((turns < 0 ? turns + 1 : turns) * static_cast<double>(bins)) % bins;
}

std::optional<std::uint32_t> CrystalFinder::at_ring(const Vector3& p) const {
    const auto above = std::lower_bound(z_.begin(), z_.end(), p[2]);
    auto ring = static_cast<std::size_t>(above - z_.begin());
    if (ring == z_.size() || (ring > 0 && p[2] - z_[ring - 1] < z_[ring] - p[2])) --ring;
    if (std::abs(z_[ring] - p[2]) > reach_) return std::nullopt;
    return static_cast<std::uint32_t>(ring * columns_) + nearest_[bin_of(p)];
}

std::optional<std::uint32_t> CrystalFinder::at_arrangement(const Vector3& p, double from_z) const {
    const double radius = std::hypot(p[0], p[1]);
    if (!(radius > 0)) return std::nullopt;
    const double angle = std::atan2(p[1], p[0]);
    // A crystal at radius r is met at z = from_z + slope r.
    const double slope = (p[2] - from_z) / radius;
    const double least = slope + std::min(from_z / least_radius_, 0.0) - largest_half_slope_;
    const double most = slope + std::max(from_z / least_radius_, 0.0) + largest_half_slope_;
    const std::vector<Seen>& bin = seen_[bin_of(p)];
    double best = 1;
    std::optional<std::uint32_t> found;
    for (auto at = std::lower_bound(bin.begin(), bin.end(), least,
                                    [](const Seen&seen, double s) { return seen.slope < s; });
         at != bin.end() && at->slope <= most; ++at) {
        const double straight = std::abs(at->angle - angle);
        const double off_angle = std::min(straight, turn - straight) / at->half_angle;
        const double off_z = std::abs(from_z + (slope - at->slope) * at->radius) / at->half_z;
        const double off = std::max(off_angle, off_z);
        if (off < 1 && at->radius * shadow < radius) return std::nullopt;
        if (off >= best || at->radius > radius * shadow) continue;
        best = off;
        found = at->crystal;
    }
    return found;
}

std::optional<std::uint32_t> CrystalFinder::at(const Vector3& p, double from_z) const {
    return columns_ > 0 ? at_ring(p) : at_arrangement(p, from_z);
}

}  // namespace petacq::estimate
