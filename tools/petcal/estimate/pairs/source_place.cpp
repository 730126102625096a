#include "tools/petcal/estimate/pairs/source_place.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "config/median.hpp"

namespace petacq::estimate {

namespace {

constexpr double dead_share = 0.2;  // of the counts of the median

/// Finds the crystal at a point.
class CrystalFinder {
  public:
    CrystalFinder(const config::Scanner& scanner, double depth_mm)
        : columns_(scanner.geometry.crystals_in_ring()) {
        const config::Geometry& g = scanner.geometry;
        for (std::uint32_t i = 0; i < g.crystal_count(); ++i)
            points_.push_back(point_at_depth(crystal_place(scanner, i), depth_mm));
        nearest_.resize(std::size_t{bins_per_column} * columns_);
        for (std::size_t bin = 0; bin < nearest_.size(); ++bin) {
            const double angle = (static_cast<double>(bin) + 0.5) / static_cast<double>(nearest_.size()) * 2 *
                                 std::numbers::pi;
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
    [[nodiscard]] const Vector3& point(std::uint32_t crystal) const { return points_[crystal]; }
    /// Beyond the front faces; nothing beyond the ends.
    [[nodiscard]] std::optional<std::uint32_t> at(const Vector3& p) const {
        const auto above = std::lower_bound(z_.begin(), z_.end(), p[2]);
        auto ring = static_cast<std::size_t>(above - z_.begin());
        if (ring == z_.size() || (ring > 0 && p[2] - z_[ring - 1] < z_[ring] - p[2])) --ring;
        if (std::abs(z_[ring] - p[2]) > reach_) return std::nullopt;
        const double turns = std::atan2(p[1], p[0]) / (2 * std::numbers::pi);
        const auto bin =
            static_cast<std::size_t>((turns < 0 ? turns + 1 : turns) * static_cast<double>(nearest_.size()));
        return static_cast<std::uint32_t>(ring * columns_) + nearest_[bin % nearest_.size()];
    }

  private:
    static constexpr std::uint32_t bins_per_column = 8;
    std::uint32_t columns_;
    std::vector<Vector3> points_;
    std::vector<std::uint32_t> nearest_;  // [bin of the angle] column
    std::vector<double> z_;               // [ring]
    double reach_ = 0;
};

/// [crystal] Whether its detector unit counts.
std::vector<bool> live_crystals(const config::Geometry& g, std::span<const Line> lines) {
    std::vector<double> counts(std::size_t{g.bdm_count} * g.du_count);
    std::vector<std::size_t> unit_of(g.crystal_count());
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        for (std::uint32_t du = 0; du < g.du_count; ++du)
            for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
                unit_of[g.crystal(bdm, du, local)] = std::size_t{bdm} * g.du_count + du;
    for (const auto& [a, b] : lines) {
        counts[unit_of[a]] += 1;
        counts[unit_of[b]] += 1;
    }
    const double least = dead_share * config::median(counts);
    std::vector<bool> live;
    live.reserve(unit_of.size());
    for (const std::size_t unit : unit_of)
        live.push_back(counts[unit] > least);
    return live;
}

/// How far lines may pass from the centre: across the axis, and along it.
struct Reach {
    double across = 0;
    double along = 0;
};

/// Over the lines within reach that count: what moves the centre to their middle.
struct PlaceSums {
    Eigen::Matrix2d matrix = Eigen::Matrix2d::Zero();
    Eigen::Vector2d right = Eigen::Vector2d::Zero();
    double squares = 0;
    double along = 0;
    double lines = 0;
};

PlaceSums sums_around(const Vector3& centre, Reach reach, const CrystalFinder& finder,
                      const std::vector<bool>& live, std::span<const Line> lines) {
    PlaceSums sums;
    for (const auto& [a, b] : lines) {
        const Vector3& p = finder.point(a);
        const Vector3& q = finder.point(b);
        const double dx = q[0] - p[0];
        const double dy = q[1] - p[1];
        const double length = std::hypot(dx, dy);
        if (!(length > 0)) continue;
        const Eigen::Vector2d normal(-dy / length, dx / length);
        const double off = normal.dot(Eigen::Vector2d(p[0] - centre[0], p[1] - centre[1]));
        if (std::abs(off) > reach.across) continue;
        const double part = ((centre[0] - p[0]) * dx + (centre[1] - p[1]) * dy) / (length * length);
        const double z = p[2] + part * (q[2] - p[2]) - centre[2];
        if (std::abs(z) > reach.along) continue;
        const auto seen = [&](const Vector3& end) {
            const auto mirror =
                finder.at({2 * centre[0] - end[0], 2 * centre[1] - end[1], 2 * centre[2] - end[2]});
            return mirror && live[*mirror];
        };
        if (!seen(p) || !seen(q)) continue;
        sums.matrix += normal * normal.transpose();
        sums.right += off * normal;
        sums.squares += off * off;
        sums.along += z;
        sums.lines += 1;
    }
    return sums;
}

/// With two modules exchanged.
std::uint32_t exchange(const std::vector<std::uint32_t>& crystals, std::size_t in_module, std::size_t place,
                       Exchange modules) {
    const std::size_t bdm = place / in_module;
    if (bdm == modules.a) return crystals[modules.b * in_module + place % in_module];
    if (bdm == modules.b) return crystals[modules.a * in_module + place % in_module];
    return crystals[place];
}

}  // namespace

SourcePlace find_source(const config::Scanner& scanner, std::span<const Line> lines, const KnownSource& said,
                        double depth_mm) {
    constexpr int steps = 60;
    const CrystalFinder finder(scanner, depth_mm);
    const std::vector<bool> live = live_crystals(scanner.geometry, lines);
    const config::Dimensions& d = scanner.dimensions;
    SourcePlace out;
    double half_length = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        out.centre_mm[i] = (said.from[i] + said.to[i]) / 2;
        half_length += std::pow((said.to[i] - said.from[i]) / 2, 2);
    }
    half_length = std::sqrt(half_length);
    const bool point = !(half_length > 0);
    const Reach last{said.radius_mm + d.crystal_pitch_y_mm,
                     (point ? said.radius_mm : half_length) + d.crystal_pitch_z_mm};
    double more = d.ring_radius_mm / 2;
    for (int step = 0; step < steps; ++step, more *= 0.85) {
        const Reach reach{last.across + more, last.along + more};
        const PlaceSums sums = sums_around(out.centre_mm, reach, finder, live, lines);
        if (sums.lines < 100) break;
        const Eigen::Vector2d change = sums.matrix.ldlt().solve(sums.right);
        out.centre_mm[0] += change[0];
        out.centre_mm[1] += change[1];
        out.centre_mm[2] += sums.along / sums.lines;
        out.lines = static_cast<std::uint64_t>(sums.lines);
        out.error_mm = std::sqrt(2 * sums.squares) / sums.lines;
    }
    return out;
}

std::vector<Exchange> exchanged_modules(const config::Scanner& scanner, std::span<const Line> lines,
                                        const KnownSource& source) {
    constexpr std::size_t max_suspects = 8;
    const config::Geometry& g = scanner.geometry;
    const std::size_t in_module = std::size_t{g.du_count} * g.crystals_per_du();
    std::vector<std::uint32_t> crystals;  // module by module
    std::vector<std::size_t> place_of(g.crystal_count());
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        for (std::uint32_t du = 0; du < g.du_count; ++du)
            for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
                place_of[g.crystal(bdm, du, local)] = crystals.size();
                crystals.push_back(g.crystal(bdm, du, local));
            }
    std::vector<Vector3> points;
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i)
        points.push_back(crystal_place(scanner, i).front_centre_mm);
    const auto misses = [&](std::uint32_t a, std::uint32_t b) {
        return a == b || !chord_of(source, points[a], points[b]);
    };
    std::vector<double> all(g.bdm_count);
    std::vector<double> missed(g.bdm_count);
    for (const auto& [a, b] : lines) {
        const bool miss = misses(a, b);
        for (const std::uint32_t crystal : {a, b}) {
            all[place_of[crystal] / in_module] += 1;
            missed[place_of[crystal] / in_module] += miss ? 1 : 0;
        }
    }
    std::vector<double> shares;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        shares.push_back(all[bdm] > 0 ? missed[bdm] / all[bdm] : 0);
    const double usual = 2 * config::median(shares) + 0.1;
    std::vector<std::uint32_t> suspects;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        if (all[bdm] >= 100 && shares[bdm] > usual) suspects.push_back(bdm);
    std::sort(suspects.begin(), suspects.end(), [&](auto a, auto b) { return shares[a] > shares[b]; });
    suspects.resize(std::min(suspects.size(), max_suspects));
    std::vector<Exchange> found;
    for (const std::uint32_t a : suspects) {
        for (const std::uint32_t b : suspects) {
            if (a >= b) continue;
            Exchange tried{a, b, 0, 0};
            double touching = 0;
            for (const auto& [p, q] : lines) {
                const std::size_t of_p = place_of[p] / in_module;
                const std::size_t of_q = place_of[q] / in_module;
                if (of_p != a && of_p != b && of_q != a && of_q != b) continue;
                touching += 1;
                tried.missed += misses(p, q) ? 1 : 0;
                tried.missed_after += misses(exchange(crystals, in_module, place_of[p], tried),
                                             exchange(crystals, in_module, place_of[q], tried))
                                          ? 1
                                          : 0;
            }
            tried.missed /= touching;
            tried.missed_after /= touching;
            if (tried.missed_after < std::min(usual, tried.missed / 2)) found.push_back(tried);
        }
    }
    std::sort(found.begin(), found.end(),
              [](const Exchange& p, const Exchange& q) { return p.missed_after < q.missed_after; });
    std::vector<Exchange> out;  // each module once
    for (const Exchange& e : found) {
        const bool taken = std::any_of(out.begin(), out.end(), [&](const Exchange& o) {
            return o.a == e.a || o.a == e.b || o.b == e.a || o.b == e.b;
        });
        if (!taken) out.push_back(e);
    }
    return out;
}

std::vector<std::uint32_t> rings_without(const config::Geometry& g, std::span<const double> counts,
                                         std::span<const double> expected) {
    const std::size_t columns = g.crystals_in_ring();
    std::vector<double> shares(g.rings());
    for (std::size_t ring = 0; ring < shares.size(); ++ring) {
        double found = 0;
        double of_model = 0;
        for (std::size_t i = ring * columns; i < (ring + 1) * columns; ++i) {
            found += counts[i];
            of_model += expected[i];
        }
        shares[ring] = of_model > 0 ? found / of_model : 0;
    }
    std::vector<double> sorted = shares;
    std::sort(sorted.begin(), sorted.end());
    const double least = dead_share * sorted[sorted.size() * 3 / 4];
    std::vector<std::uint32_t> out;
    for (std::uint32_t ring = 0; ring < shares.size(); ++ring)
        if (shares[ring] <= least) out.push_back(ring);
    return out;
}

}  // namespace petacq::estimate
