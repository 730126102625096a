#include "tools/petcal/check/module_times.hpp"

#include <cmath>
#include <random>
#include <stdexcept>

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
    const auto [times, variance] = petcal::module_times(pairs, differences);
    double mean = 0;
    for (const double t : truth)
        mean += t / n;
    for (std::size_t m = 0; m < n; ++m) {
        INFO(m);
        CHECK(times[m] == Approx(truth[m] - mean).margin(5 * 10 * std::sqrt(variance[m])));
        CHECK(10 * std::sqrt(variance[m]) < 0.1);
    }
}

TEST_CASE("the variance of a time is that of many trials, also where only opposite modules are joined",
          "[check]") {
    constexpr std::size_t n = 12;
    std::mt19937_64 random(4);
    std::normal_distribution<> normal;
    std::vector<double> pairs(n * n);
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
            pairs[a * n + b] = (b + n - a) % n == 6                           ? 900
                               : (b + n - a) % n == 5 || (b + n - a) % n == 7 ? 30
                                                                              : 0;
    double squares = 0;
    double stated = 0;
    constexpr int trials = 2000;
    for (int i = 0; i < trials; ++i) {
        std::vector<double> differences(n);
        for (std::size_t a = 0; a < n; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                const double sum = std::sqrt(pairs[a * n + b]) * normal(random);
                differences[a] += sum;
                differences[b] -= sum;
            }
        }
        const auto found = petcal::module_times(pairs, differences);
        squares += found.times[3] * found.times[3] / trials;
        stated = found.variance[3];
    }
    CHECK(squares == Approx(stated).epsilon(0.15));
    CHECK(stated > 5. / 960);  // much more than by its own pairs
}

TEST_CASE("modules without pairs have no time", "[check]") {
    CHECK(std::isinf(petcal::module_times(std::vector<double>(9), std::vector<double>(3)).variance[1]));
    // Two of three are joined.
    const auto found = petcal::module_times(std::vector<double>{0, 50, 0, 50, 0, 0, 0, 0, 0},
                                            std::vector<double>{100, -100, 0});
    CHECK(found.times[0] == Approx(-1).margin(1e-6));
    CHECK(found.times[1] == Approx(1).margin(1e-6));
    CHECK(found.variance[0] == Approx(0.005).epsilon(1e-6));
    CHECK(std::isinf(found.variance[2]));
    CHECK_THROWS_AS(petcal::module_times(std::vector<double>(4), std::vector<double>(3)),
                    std::invalid_argument);
}
