#include "tests/tools/petcal/estimate/fast_pairs.hpp"

#include <cmath>
#include <numbers>

#include "config/base/constants.hpp"

namespace petacq::test {

namespace {

constexpr double full_turn = 2 * std::numbers::pi;

}  // namespace

config::Scanner ring_of_72() {
    config::Scanner s;
    s.name = "ring of 72";
    s.geometry = {12, {1, 1, 1}, {1, 1, 1}, {1, 2, 3}, 12, 1, 64};
    s.tick_ps = 15.625;
    s.dimensions = {12, 3, 3, 10, 0, 0, 0};
    return s;
}

FastPairs::FastPairs(const config::Scanner& scanner, std::uint64_t seed) : scanner_(scanner), random_(seed) {
    for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i) {
        places_.push_back(crystal_place(scanner, i).front_centre_mm);
        offsets_.push_back(30 * normal_(random_));
    }
    radius_ = std::hypot(places_[0][0], places_[0][1]);
    first_angle_ = std::atan2(places_[0][1], places_[0][0]);
}

std::optional<FastPairs::Pair> FastPairs::next(const FastSource& source) {
    const double r = source.radius * std::sqrt(uniform_(random_));
    const double at = full_turn * uniform_(random_);
    const double x = source.x + r * std::cos(at);
    const double y = source.y + r * std::sin(at);
    const double z = source.z + source.length * (uniform_(random_) - 0.5);
    const double along = 2 * uniform_(random_) - 1;
    const double across = std::sqrt(1 - along * along);
    const double way = full_turn * uniform_(random_);
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

std::vector<estimate::TimeDifference> FastPairs::differences(const FastSource& source,
                                                             const estimate::KnownSource& known,
                                                             std::size_t count, double random_share) {
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

double FastPairs::ticks_per_mm() const {
    return 1 / (config::light_mm_per_ps * scanner_.tick_ps);
}

double FastPairs::time(std::uint32_t crystal, double way_mm) {
    constexpr double sigma = 10;  // ticks
    return std::floor(1000 + way_mm * ticks_per_mm() + offsets_[crystal] + sigma * normal_(random_));
}

std::optional<std::uint32_t> FastPairs::crystal_at(double x, double y, double z) const {
    const std::uint32_t columns = scanner_.geometry.crystals_in_ring();
    const double step = full_turn / columns;
    const double from_first = std::atan2(y, x) - first_angle_ + step / 2;
    const auto column = static_cast<std::uint32_t>(std::floor((from_first + 2 * full_turn) / step)) % columns;
    const double ring = std::floor((z - places_[0][2]) / scanner_.dimensions.crystal_pitch_z_mm + 0.5);
    if (ring < 0 || ring >= scanner_.geometry.rings()) return std::nullopt;
    return static_cast<std::uint32_t>(ring) * columns + column;
}

}  // namespace petacq::test
