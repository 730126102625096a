#include "tools/petcal/estimate/flood_shift.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace petacq;
using petcal::FloodShape;

namespace {

const FloodShape shape{64, 5, 4};

/// Spots with a blur of a quarter of their distance, displaced and stretched about the middle.
std::vector<std::uint32_t> flood(double counts, std::uint64_t seed, double dx = 0, double dy = 0,
                                 double stretch = 1, std::size_t noisy = 99) {
    std::mt19937_64 random(seed);
    std::normal_distribution<> normal;
    std::vector<std::uint32_t> map(shape.positions());
    for (std::uint32_t origin = 0; origin < shape.crystals(); ++origin) {
        const std::uint32_t row = origin / 5;
        const double x = 31.5 + stretch * (origin % 5 - 2.0) * 11;
        const double y = 31.5 + stretch * (row - 1.5) * 13;
        std::poisson_distribution<int> number(origin == noisy ? 20 * counts : counts * (1 + origin % 3));
        for (int i = number(random); i > 0; --i) {
            const long at_x = std::lround(x + dx + 11 * 0.25 * normal(random));
            const long at_y = std::lround(y + dy + 13 * 0.25 * normal(random));
            if (at_x >= 0 && at_y >= 0 && at_x < 64 && at_y < 64)
                ++map[static_cast<std::size_t>(at_x + 64 * at_y)];
        }
    }
    return map;
}

}  // namespace

TEST_CASE("a flood map that has moved is told by how much", "[derive][check]") {
    const auto before = flood(500, 1);
    const auto moved = petcal::flood_shift(shape, before, flood(800, 2, 1.5, -0.7));
    REQUIRE(moved);
    CHECK(moved->converged);
    CHECK(moved->shift.x == Approx(1.5).margin(0.15));
    CHECK(moved->shift.y == Approx(-0.7).margin(0.15));
    CHECK(moved->largest == Approx(std::hypot(1.5 / 11, 0.7 / 13)).margin(0.02));
    const auto stretched = petcal::flood_shift(shape, before, flood(500, 3, 0, 0, 1.06));
    REQUIRE(stretched);
    CHECK(stretched->stretch.x == Approx((1 - 1 / 1.06) * 32).margin(0.3));
    CHECK(stretched->shift.x == Approx(0).margin(0.15));
    // Counts of a noisy crystal move nothing.
    const auto noisy = petcal::flood_shift(shape, before, flood(500, 4, 0, 0, 1, 7));
    REQUIRE(noisy);
    CHECK(noisy->largest < 0.03);
}

TEST_CASE("the error of a flood shift is that of many trials", "[derive][check]") {
    double squares = 0;
    double stated = 0;
    constexpr int trials = 40;
    for (int i = 0; i < trials; ++i) {
        const auto found = petcal::flood_shift(shape, flood(100, 100 + i), flood(200, 200 + i));
        REQUIRE(found);
        squares += found->largest * found->largest / trials;
        stated += found->error * found->error / trials;
    }
    CHECK(squares < 1.5 * stated);
    CHECK(squares > 0.4 * stated);
}

TEST_CASE("maps without counts or structure have no shift", "[derive][check]") {
    const std::vector<std::uint32_t> empty(shape.positions());
    CHECK(!petcal::flood_shift(shape, empty, flood(500, 1)));
    CHECK(!petcal::flood_shift(shape, flood(500, 1), empty));
    CHECK(!petcal::flood_shift(shape, flood(20, 1), flood(500, 1)));
    std::vector<std::uint32_t> point(shape.positions());
    point[0] = 1'000'000;
    const auto found = petcal::flood_shift(shape, point, point);
    CHECK((!found || std::isfinite(found->largest)));
}
