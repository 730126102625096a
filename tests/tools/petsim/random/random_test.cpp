#include "tools/petsim/random/random.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace petacq;

TEST_CASE("uniform, normal and exponential numbers have their moments", "[petsim][random]") {
    sim::Random random(1, sim::Purpose::events, 42);
    constexpr int n = 2'000'000;
    double normal1 = 0;
    double normal2 = 0;
    double normal4 = 0;
    double exponential1 = 0;
    double exponential2 = 0;
    int beyond3 = 0;
    int beyond4 = 0;
    int late = 0;
    for (int i = 0; i < n; ++i) {
        const double g = random.normal();
        const double e = random.exponential();
        normal1 += g;
        normal2 += g * g;
        normal4 += g * g * g * g;
        beyond3 += std::abs(g) > 3 ? 1 : 0;
        beyond4 += std::abs(g) > 4 ? 1 : 0;
        exponential1 += e;
        exponential2 += e * e;
        late += e > 8 ? 1 : 0;
    }
    CHECK(std::abs(normal1 / n) < 5 / std::sqrt(n));
    CHECK(normal2 / n == Approx(1).epsilon(5 * std::sqrt(2.0 / n)));
    CHECK(normal4 / n == Approx(3).epsilon(0.02));
    CHECK(beyond3 == Approx(n * 0.0026998).epsilon(0.07));
    CHECK(beyond4 == Approx(n * 6.334e-5).epsilon(0.45));  // in the tail
    CHECK(exponential1 / n == Approx(1).epsilon(5 / std::sqrt(n)));
    CHECK(exponential2 / n == Approx(2).epsilon(0.02));
    CHECK(late == Approx(n * std::exp(-8.0)).epsilon(0.2));  // in the tail
}
