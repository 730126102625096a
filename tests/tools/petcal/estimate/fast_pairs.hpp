// Pairs of photons from a cylinder in a ring of crystals without gaps, faster than those of petsim: what
// stated errors are worth needs hundreds of scans.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "config/base/constants.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

namespace petacq::test {

/// Twelve modules of 2 x 3 crystals: rings without gaps.
inline config::Scanner ring_of_72() {
    config::Scanner s;
    s.name = "ring of 72";
    s.geometry = {12, {1, 1, 1}, {1, 1, 1}, {1, 2, 3}, 12, 1, 64};
    s.tick_ps = 15.625;
    s.dimensions = {12, 3, 3, 10, 0, 0, 0};
    return s;
}

struct FastSource {
    double x = 0;  ///< mm
    double y = 0;
    double z = 0;
    double radius = 0;
    double length = 0;
};

class FastPairs {
  public:
    FastPairs(const config::Scanner& scanner, std::uint64_t seed) : scanner_(scanner), random_(seed) {
        for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i) {
            places_.push_back(crystal_place(scanner, i).front_centre_mm);
            offsets_.push_back(30 * normal_(random_));
        }
        radius_ = std::hypot(places_[0][0], places_[0][1]);
        first_angle_ = std::atan2(places_[0][1], places_[0][0]);
    }

    /// Ticks; those of crystals spread by 30.
    [[nodiscard]] const std::vector<double>& offsets() const { return offsets_; }
    [[nodiscard]] const config::Vector3& place(std::uint32_t crystal) const { return places_[crystal]; }

    /// Crystals of the photons of one annihilation, and how many ticks later that of b is.
    struct Pair {
        std::uint32_t a;
        std::uint32_t b;
        double ticks;
    };
    /// Nothing if one photon leaves the ring.
    std::optional<Pair> next(const FastSource& source) {
        const double r = source.radius * std::sqrt(uniform_(random_));
        const double at = turn() * uniform_(random_);
        const double x = source.x + r * std::cos(at);
        const double y = source.y + r * std::sin(at);
        const double z = source.z + source.length * (uniform_(random_) - 0.5);
        const double along = 2 * uniform_(random_) - 1;
        const double across = std::sqrt(1 - along * along);
        const double way = turn() * uniform_(random_);
        const double dx = std::cos(way);
        const double dy = std::sin(way);
        const double middle = -(x * dx + y * dy);
        const double half = std::sqrt(middle * middle - (x * x + y * y) + radius_ * radius_);
        std::uint32_t crystals[2];  // NOLINT(modernize-avoid-c-arrays)
        double ways[2];             // NOLINT(modernize-avoid-c-arrays)
        for (const int end : {0, 1}) {
            const double t = middle + (end == 0 ? half : -half);
            ways[end] = std::abs(t) / across;
            const auto crystal = crystal_at(x + t * dx, y + t * dy, z + t / across * along);
            if (!crystal) return std::nullopt;
            crystals[end] = *crystal;
        }
        if (crystals[0] == crystals[1]) return std::nullopt;
        return Pair{crystals[0], crystals[1], time(crystals[1], ways[1]) - time(crystals[0], ways[0])};
    }

    /// So many whose lines meet the source, of which a share is random.
    std::vector<estimate::TimeDifference> differences(const FastSource& source,
                                                      const estimate::KnownSource& known, std::size_t count,
                                                      double random_share = 0) {
        std::vector<estimate::TimeDifference> out;
        while (out.size() < count) {
            const auto pair = next(source);
            if (!pair) continue;
            const auto path = path_difference_mm(known, places_[pair->a], places_[pair->b]);
            if (!path) continue;
            const double ticks =
                uniform_(random_) < random_share ? std::floor(800 * uniform_(random_)) - 400 : pair->ticks;
            out.push_back({pair->a, pair->b, static_cast<float>(ticks - *path * ticks_per_mm())});
        }
        return out;
    }

  private:
    static double turn() { return 2 * std::numbers::pi; }
    [[nodiscard]] double ticks_per_mm() const { return 1 / (config::light_mm_per_ps * scanner_.tick_ps); }
    double time(std::uint32_t crystal, double way_mm) {
        constexpr double sigma = 10;  // ticks
        return std::floor(1000 + way_mm * ticks_per_mm() + offsets_[crystal] + sigma * normal_(random_));
    }
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(double x, double y, double z) const {
        const std::uint32_t columns = scanner_.geometry.crystals_in_ring();
        const double step = turn() / columns;
        const double from_first = std::atan2(y, x) - first_angle_ + step / 2;
        const auto column =
            static_cast<std::uint32_t>(std::floor((from_first + 2 * turn()) / step)) % columns;
        const double ring = std::floor((z - places_[0][2]) / scanner_.dimensions.crystal_pitch_z_mm + 0.5);
        if (ring < 0 || ring >= scanner_.geometry.rings()) return std::nullopt;
        return static_cast<std::uint32_t>(ring) * columns + column;
    }

    const config::Scanner& scanner_;
    std::mt19937_64 random_;
    std::normal_distribution<> normal_;
    std::uniform_real_distribution<> uniform_;
    std::vector<config::Vector3> places_;
    std::vector<double> offsets_;
    double radius_ = 0;
    double first_angle_ = 0;
};

/// How often a value lies within its stated error of the truth.
struct Coverage {
    double inside = 0;
    double all = 0;
    void add(double wrong, double error) {
        inside += std::abs(wrong) < error ? 1 : 0;
        all += 1;
    }
    [[nodiscard]] double share() const { return inside / all; }
};

}  // namespace petacq::test
