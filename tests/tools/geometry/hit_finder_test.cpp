// The hit finder against config::crystal_place, by brute force.
#include <cmath>
#include <optional>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/random/random.hpp"

using namespace petacq;

namespace {

struct Found {
    std::optional<geometry::Entry> entry;
    bool near_edge = false;  // of a crystal, so that rounding may decide
};

// Every front face in turn: a rectangle of one pitch by one pitch at the crystal's place.
Found search(const config::Scanner& scanner, const sim::Vector3& from, const sim::Vector3& direction) {
    Found found;
    for (std::uint32_t c = 0; c < scanner.geometry.crystal_count(); ++c) {
        const auto place = config::crystal_place(scanner, c);
        const auto& n = place.outward;
        const double towards = n[0] * direction[0] + n[1] * direction[1] + n[2] * direction[2];
        if (towards <= 1e-9) continue;
        double reach = 0;
        for (std::size_t i = 0; i < 3; ++i)
            reach += n[i] * (place.front_centre_mm[i] - from[i]);
        reach /= towards;
        if (reach < 0) continue;
        sim::Vector3 off{};
        for (std::size_t i = 0; i < 3; ++i)
            off[i] = from[i] + reach * direction[i] - place.front_centre_mm[i];
        const double v = std::abs(-n[1] * off[0] + n[0] * off[1]) - scanner.dimensions.crystal_pitch_y_mm / 2;
        const double z = std::abs(off[2]) - scanner.dimensions.crystal_pitch_z_mm / 2;
        if (std::max(v, z) > 1e-6) continue;
        if (std::max(v, z) > -1e-6) found.near_edge = true;
        if (!found.entry || reach < found.entry->distance_mm) found.entry = geometry::Entry{c, reach};
    }
    return found;
}

void compare_with_search(const config::Scanner& scanner, int rays, double farthest) {
    const geometry::HitFinder finder(scanner);
    sim::Random random(3, sim::Purpose::events, 0);
    int hits = 0;
    for (int i = 0; i < rays; ++i) {
        sim::Vector3 from{farthest * random.symmetric() / 1.5, farthest * random.symmetric() / 1.5,
                          20 * random.symmetric()};
        const double cosine = random.symmetric();
        const double sine = std::sqrt(1 - cosine * cosine);
        const double phi = 3.14159265358979 * random.symmetric();
        const sim::Vector3 direction{sine * std::cos(phi), sine * std::sin(phi), cosine};
        const Found expected = search(scanner, from, direction);
        if (expected.near_edge) continue;
        const auto entry = finder.find(from, direction);
        REQUIRE(entry.has_value() == expected.entry.has_value());
        if (!entry) continue;
        ++hits;
        REQUIRE(entry->crystal == expected.entry->crystal);
        REQUIRE(entry->distance_mm == Approx(expected.entry->distance_mm).epsilon(1e-9));
    }
    CHECK(hits > rays / 10);
}

// Every crystal in turn: a box behind its front face.
void compare_points_with_search(const config::Scanner& scanner, int points) {
    const geometry::HitFinder finder(scanner);
    const double outer = finder.outer_radius_mm();
    sim::Random random(4, sim::Purpose::check, 0);
    int inside = 0;
    for (int i = 0; i < points; ++i) {
        const double edge = 1.05 * outer;
        const sim::Vector3 point{edge * random.symmetric(), edge * random.symmetric(),
                                 1.1 * finder.axial_high_mm() * random.symmetric()};
        std::optional<std::uint32_t> expected;
        for (std::uint32_t c = 0; c < scanner.geometry.crystal_count(); ++c) {
            const auto place = config::crystal_place(scanner, c);
            const double x = point[0] - place.front_centre_mm[0];
            const double y = point[1] - place.front_centre_mm[1];
            const double z = point[2] - place.front_centre_mm[2];
            const double depth = place.outward[0] * x + place.outward[1] * y;
            const double v = place.outward[0] * y - place.outward[1] * x;
            if (depth < 0 || depth > scanner.dimensions.crystal_length_mm) continue;
            if (std::abs(v) > scanner.dimensions.crystal_pitch_y_mm / 2) continue;
            if (std::abs(z) <= scanner.dimensions.crystal_pitch_z_mm / 2) expected = c;
        }
        REQUIRE(finder.crystal_at(point) == expected);
        if (!expected) continue;
        ++inside;
        REQUIRE(std::hypot(point[0], point[1]) <= outer);
    }
    CHECK(inside > points / 50);
}

}  // namespace

TEST_CASE("the hit finder agrees with a search over all crystals", "[petsim][geometry]") {
    SECTION("uneven scanner") {
        compare_with_search(test::small_scanner(), 3000, 30);
        compare_points_with_search(test::small_scanner(), 3000);
    }
    SECTION("one module around the ring per channel, three sides") {
        auto scanner = test::small_scanner();
        scanner.geometry = {3, {1, 1, 1}, {1, 1, 2}, {1, 7, 3}, 3, 2, 64};
        scanner.dimensions = {10, 2.0, 2.5, 10, 0, 1.5, 0};
        compare_with_search(scanner, 3000, 9);
        compare_points_with_search(scanner, 3000);
    }
    SECTION("two panels face to face") {
        auto scanner = test::small_scanner();
        scanner.geometry = {2, {1, 1, 1}, {1, 3, 2}, {1, 6, 6}, 2, 6, 64};
        scanner.dimensions = {20, 2.0, 2.0, 10, 1, 1, 0};
        compare_with_search(scanner, 3000, 15);
        compare_points_with_search(scanner, 3000);
    }
    SECTION("one panel") {
        auto scanner = test::small_scanner();
        scanner.geometry = {1, {1, 1, 1}, {1, 3, 4}, {1, 8, 8}, 1, 12, 64};
        scanner.dimensions = {20, 2.0, 2.0, 10, 1, 1, 0};
        compare_with_search(scanner, 3000, 15);
        compare_points_with_search(scanner, 3000);
    }
}

TEST_CASE("a photon towards the front centre of any crystal is found in that crystal", "[petsim][geometry]") {
    const auto scanner = test::small_scanner();
    const geometry::HitFinder finder(scanner);
    const sim::Vector3 from{3, -5, 2};
    for (std::uint32_t c = 0; c < scanner.geometry.crystal_count(); ++c) {
        const auto place = config::crystal_place(scanner, c);
        sim::Vector3 d{};
        double length = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            d[i] = place.front_centre_mm[i] - from[i];
            length += d[i] * d[i];
        }
        length = std::sqrt(length);
        for (double& v : d)
            v /= length;
        const auto entry = finder.find(from, d);
        REQUIRE(entry.has_value());
        REQUIRE(entry->crystal == c);
        REQUIRE(entry->distance_mm == Approx(length));
    }
}
