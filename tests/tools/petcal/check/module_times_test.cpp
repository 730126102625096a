#include "tools/petcal/check/module_times.hpp"

#include <random>

#include "tests/support/catch.hpp"

using namespace petacq;

TEST_CASE("times of modules fit the differences of all pairs", "[check]") {
    constexpr std::size_t n = 12;
    std::mt19937_64 random(3);
    std::normal_distribution<> normal;
    std::vector<double> truth(n);
    truth[3] = 40;  // several that are off, next to each other: their partners must not seem to be
    truth[4] = 35;
    truth[9] = -20;
    std::vector<double> pairs(n * n);
    std::vector<double> differences(n);
    for (int i = 0; i < 200'000; ++i) {
        const std::size_t a = random() % n;
        const std::size_t b = (a + 4 + random() % 5) % n;  // the opposite ones
        const double dt = truth[b] - truth[a] + 10 * normal(random);
        pairs[a * n + b] += 1;
        pairs[b * n + a] += 1;
        differences[a] += dt;
        differences[b] -= dt;
    }
    const auto times = petcal::module_times(pairs, differences);
    double mean = 0;
    for (const double t : truth)
        mean += t / n;
    for (std::size_t m = 0; m < n; ++m) {
        INFO(m);
        CHECK(times[m] == Approx(truth[m] - mean).margin(0.5));
    }
}

TEST_CASE("modules without pairs have no time", "[check]") {
    CHECK(petcal::module_times(std::vector<double>(9), std::vector<double>(3)) == std::vector<double>(3));
    // Two of three are joined.
    const auto times = petcal::module_times(std::vector<double>{0, 50, 0, 50, 0, 0, 0, 0, 0},
                                            std::vector<double>{100, -100, 0});
    CHECK(times[0] == Approx(-1).margin(1e-6));
    CHECK(times[1] == Approx(1).margin(1e-6));
    CHECK(times[2] == 0);
}
