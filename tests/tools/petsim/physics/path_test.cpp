// The ways of photons through a cylinder and through the crystals, against plain searches.
#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/physics/crystal_ring.hpp"
#include "tools/petsim/physics/cylinder.hpp"

using namespace petacq;

namespace {

sim::Ray random_ray(sim::Random& random, double reach) {
    return {{reach * random.symmetric(), reach * random.symmetric(), reach * random.symmetric()},
            sim::isotropic(random)};
}

/// The length of a ray in all crystals, in small steps.
template <class Finder>
double length_in_crystals(const Finder& finder, sim::Ray ray, double farthest) {
    constexpr double step = 0.05;
    int inside = 0;
    ray.advance(step / 2);
    for (int i = 0; i * step < farthest; ++i) {
        inside += finder.crystal_at(ray.at) ? 1 : 0;
        ray.advance(step);
    }
    return step * inside;
}

}  // namespace

TEST_CASE("the chord of a cylinder is the part of the ray inside it", "[petsim][photons]") {
    const sim::Cylinder cylinder{{3, -2, 5}, 10, 30};
    sim::Random random(6, sim::Purpose::check, 0);
    int met = 0;
    for (int i = 0; i < 2000; ++i) {
        const sim::Ray ray = random_ray(random, 25);
        const auto found = sim::chord(cylinder, ray);
        met += found ? 1 : 0;
        for (int half = 0; half < 180; ++half) {
            const double way = 0.25 + 0.5 * half;
            sim::Ray there = ray;
            there.advance(way);
            const bool inside = found && way > found->from && way < found->to;
            const bool edge =
                found && (std::abs(way - found->from) < 1e-9 || std::abs(way - found->to) < 1e-9);
            if (!edge) REQUIRE(cylinder.contains(there.at) == inside);
        }
    }
    CHECK(met > 200);
    const auto across = sim::chord(cylinder, {{3, -2, 5}, {1, 0, 0}});
    REQUIRE(across);
    CHECK(across->from == 0);
    CHECK(across->to == Approx(10));
    const auto along = sim::chord(cylinder, {{3, -2, -100}, {0, 0, 1}});
    REQUIRE(along);
    CHECK(along->from == Approx(90));
    CHECK(along->to == Approx(120));
    CHECK(!sim::chord(cylinder, {{20, -2, 5}, {0, 0, 1}}));
    CHECK(!sim::chord(cylinder, {{3, -2, 21}, {1, 0, 0}}));
    CHECK(!sim::chord(cylinder, {{30, -2, 5}, {1, 0, 0}}));  // it lies behind
}

TEST_CASE("a photon passes solid crystals with the chance exp(-mu d), and its mean free path is 1 / mu",
          "[petsim][photons]") {
    auto scanner = test::small_scanner();
    scanner.dimensions.crystal_length_mm = 20;
    const sim::CrystalRing ring(scanner);
    const auto place = config::crystal_place(scanner, 2);  // not beside a gap
    constexpr double mu = 0.083;
    constexpr int n = 40'000;
    sim::Random random(7, sim::Purpose::check, 0);
    test::Moments depth;
    int passed = 0;
    for (int i = 0; i < n; ++i) {
        sim::Ray ray{place.front_centre_mm, place.outward};
        const sim::CrystalStep step = ring.advance(ray, mu, random);
        if (step.reached == sim::Reached::crystal) {
            REQUIRE(step.crystal == 2);
            depth.add(step.path_mm);
        } else {
            REQUIRE(step.reached == sim::Reached::outside);
            ++passed;
        }
    }
    const double through = std::exp(-mu * 20);
    CHECK(passed == Approx(n * through).margin(3 * std::sqrt(n * through * (1 - through))));
    // The mean of an exponential that is cut at 20 mm.
    const double mean = 1 / mu - 20 * through / (1 - through);
    CHECK(depth.mean() == Approx(mean).margin(3 * depth.sigma() / std::sqrt(depth.n)));
    CHECK(1 / (mean + 20 * through / (1 - through)) == Approx(mu));
}

TEST_CASE("oblique photons pass with the chance of their length in crystals, gaps left out",
          "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const sim::CrystalRing ring(scanner);
    constexpr double mu = 0.08;
    sim::Random random(8, sim::Purpose::check, 0);
    double expected = 0;
    double variance = 0;
    int passed = 0;
    int rays = 0;
    for (int i = 0; i < 2500; ++i) {
        sim::Ray ray = random_ray(random, 18);
        sim::Ray start = ray;
        if (ring.leave_bore(start) < 0) continue;
        ++rays;
        const double through = std::exp(-mu * length_in_crystals(ring.finder(), start, 80));
        expected += through;
        variance += through * (1 - through);
        const auto step = ring.advance(start, mu, random);
        REQUIRE(step.reached != sim::Reached::bore);
        passed += step.reached == sim::Reached::outside ? 1 : 0;
    }
    CHECK(rays > 2000);
    CHECK(expected < 0.9 * rays);
    CHECK(passed == Approx(expected).margin(3 * std::sqrt(variance)));
}

TEST_CASE("a photon from a crystal flies through the bore to the other side", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const sim::CrystalRing ring(scanner);
    const auto place = config::crystal_place(scanner, 2);
    sim::Random random(9, sim::Purpose::check, 0);
    sim::Ray ray{config::point_at_depth(place, 0.5), {-place.outward[0], -place.outward[1], 0}};
    CHECK(!ring.in_bore(ray.at));
    sim::CrystalStep step{};
    do {  // until it leaves the crystal
        ray.at = config::point_at_depth(place, 0.5);
        step = ring.advance(ray, 0.08, random);
    } while (step.reached == sim::Reached::crystal);
    REQUIRE(step.reached == sim::Reached::bore);
    CHECK(std::hypot(ray.at[0], ray.at[1]) == Approx(scanner.dimensions.ring_radius_mm));
    CHECK(ring.leave_bore(ray) > 1.9 * scanner.dimensions.ring_radius_mm);
    CHECK(std::hypot(ray.at[0], ray.at[1]) == Approx(scanner.dimensions.ring_radius_mm));
    step = ring.advance(ray, 1e3, random);
    REQUIRE(step.reached == sim::Reached::crystal);
    CHECK(config::crystal_place(scanner, step.crystal).outward[0] * place.outward[0] < 0);
    sim::Ray axial{{0, 0, 0}, {0, 0, 1}};
    CHECK(ring.leave_bore(axial) < 0);
}
