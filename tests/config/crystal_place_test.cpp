#include <cmath>
#include <numbers>
#include <stdexcept>

#include "config/scanner/scanner.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

config::Vector3 difference(const config::CrystalPlace& a, const config::CrystalPlace& b) {
    return {b.front_centre_mm[0] - a.front_centre_mm[0], b.front_centre_mm[1] - a.front_centre_mm[1],
            b.front_centre_mm[2] - a.front_centre_mm[2]};
}

double length(const config::Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

double dot(const config::Vector3& a, const config::Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Approx near(double value) {
    return Approx(value).margin(1e-9);
}

}  // namespace

TEST_CASE("the front faces of a module lie in the plane that touches the circle at its middle") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    const auto& g = s.geometry;
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal) {
        const auto place = config::crystal_place(s, crystal);
        const auto module = crystal % g.crystals_in_ring() / g.crystals_per_module_y();
        const double angle = 2 * std::numbers::pi * module / 12;
        REQUIRE(place.outward[0] == near(std::cos(angle)));
        REQUIRE(place.outward[1] == near(std::sin(angle)));
        REQUIRE(place.outward[2] == 0);
        REQUIRE(dot(place.front_centre_mm, place.outward) == near(s.dimensions.ring_radius_mm));
    }
}

TEST_CASE("neighbours are a pitch apart, with the gaps between blocks and modules") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    const auto& g = s.geometry;
    const auto at = [&](std::uint32_t in_ring, std::uint32_t ring) {
        return config::crystal_place(s, in_ring + ring * g.crystals_in_ring());
    };
    SECTION("around the ring, counter-clockwise") {
        for (std::uint32_t i = 0; i + 1 < 10; ++i) {
            const auto step = difference(at(i, 0), at(i + 1, 0));
            // Module 0 is at +x: counter-clockwise there is +y.
            CHECK(step[0] == near(0));
            CHECK(step[1] == near(i == 4 ? 1.6 + 0.4 : 1.6));
            CHECK(step[2] == near(0));
        }
        const auto centre = at(32, 0);  // module 3, at +y: counter-clockwise is -x
        CHECK(difference(centre, at(33, 0))[0] == near(-1.6));
    }
    SECTION("along the axis") {
        for (std::uint32_t r = 0; r + 1 < 24; ++r) {
            const auto step = difference(at(7, r), at(7, r + 1));
            CHECK(step[0] == near(0));
            CHECK(step[1] == near(0));
            CHECK(step[2] == near(r == 11 ? 1.7 + 1 : r % 4 == 3 ? 1.7 + 0.5 : 1.7));
        }
    }
}

TEST_CASE("the scanner is centred on the origin") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    const auto& g = s.geometry;
    config::Vector3 sum{};
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal) {
        const auto place = config::crystal_place(s, crystal);
        for (std::size_t i = 0; i < 3; ++i)
            sum[i] += place.front_centre_mm[i];
    }
    CHECK(length(sum) == Approx(0).margin(1e-6));
    // First and last ring: 24 crystals, four gaps between blocks, one between modules.
    const double half = (23 * 1.7 + 4 * 0.5 + 1) / 2;
    CHECK(config::crystal_place(s, 0).front_centre_mm[2] == near(-half));
    CHECK(config::crystal_place(s, g.crystal_count() - 1).front_centre_mm[2] == near(half));
}

TEST_CASE("crystals that face each other are the diameter apart") {
    const auto s = config::load_scanner(example("mouse.scanner.json"));
    const auto& g = s.geometry;
    // Modules of 30 crystals: crystal i faces crystal 29 - i of the opposite module.
    const auto a = config::crystal_place(s, 3);
    const auto b = config::crystal_place(s, 6 * 30 + 26);
    CHECK(length(difference(a, b)) == near(100));
    CHECK(dot(a.outward, b.outward) == near(-1));
    CHECK(g.crystals_in_ring() == 360);
}

TEST_CASE("three modules, one block, odd counts") {
    config::Scanner s = tiny_scanner();
    s.geometry = {3, {1, 1, 1}, {1, 1, 1}, {1, 3, 1}, 3, 1, 16};
    // The middle crystal of each module is at the touching point, on the axis in z.
    for (std::uint32_t module = 0; module < 3; ++module) {
        const auto place = config::crystal_place(s, module * 3 + 1);
        const double angle = 2 * std::numbers::pi * module / 3;
        CHECK(place.front_centre_mm[0] == near(20 * std::cos(angle)));
        CHECK(place.front_centre_mm[1] == near(20 * std::sin(angle)));
        CHECK(place.front_centre_mm[2] == near(0));
    }
    CHECK_THROWS_AS(config::crystal_place(s, 9), std::out_of_range);
}

}  // namespace petacq::test
