// The hit finder against the description of each crystal, by brute force.
#include <algorithm>
#include <cmath>
#include <optional>

#include "config/scanner/arrangement.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/odd_scanner.hpp"
#include "tests/support/tapered_scanner.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/random/random.hpp"

using namespace petacq;

namespace {

struct Found {
    std::optional<geometry::Entry> entry;
    bool near_edge = false;  // of a crystal, so that rounding may decide
};

double dot(const sim::Vector3& a, const sim::Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// A crystal as its description says.
struct Crystal {
    explicit Crystal(const config::Arrangement& arrangement, std::uint32_t number)
        : place(arrangement.place(number)),
          module(arrangement.modules()[arrangement.address(number).module]) {
        const config::CrystalAddress address = arrangement.address(number);
        const config::CrystalLayer& layer = arrangement.layer_of(number);
        half_y = layer.y.sizes[address.column] / 2;
        half_z = layer.z.sizes[address.row] / 2;
        length = layer.length_mm;
    }
    /// In its own coordinates: along y and z from the middle, and the depth.
    [[nodiscard]] sim::Vector3 local(const sim::Vector3& point) const {
        const auto& front = place.front_centre_mm;
        const sim::Vector3 off{point[0] - front[0], point[1] - front[1], point[2] - front[2]};
        return {dot(off, module.along_y), dot(off, module.along_z), dot(off, module.outward)};
    }

    config::CrystalPlace place;
    const config::Module& module;
    double half_y = 0;
    double half_z = 0;
    double length = 0;
};

// Every front face in turn.
Found search(const config::Arrangement& arrangement, const sim::Vector3& from,
             const sim::Vector3& direction) {
    Found found;
    for (std::uint32_t c = 0; c < arrangement.crystal_count(); ++c) {
        const Crystal crystal(arrangement, c);
        const double towards = dot(crystal.module.outward, direction);
        if (towards <= 1e-9) continue;
        const double reach = -crystal.local(from)[2] / towards;
        if (reach < 0) continue;
        const sim::Vector3 there = crystal.local(
            {from[0] + reach * direction[0], from[1] + reach * direction[1], from[2] + reach * direction[2]});
        const double beyond =
            std::max(std::abs(there[0]) - crystal.half_y, std::abs(there[1]) - crystal.half_z);
        if (beyond > 1e-6) continue;
        if (beyond > -1e-6) found.near_edge = true;
        if (!found.entry || reach < found.entry->distance_mm) found.entry = geometry::Entry{c, reach};
    }
    return found;
}

template <class Finder>
void compare_rays(const Finder& finder, const config::Arrangement& arrangement, int rays, double farthest) {
    sim::Random random(3, sim::Purpose::events, 0);
    int hits = 0;
    for (int i = 0; i < rays; ++i) {
        const sim::Vector3 from{farthest * random.symmetric() / 1.5, farthest * random.symmetric() / 1.5,
                                20 * random.symmetric()};
        const double cosine = random.symmetric();
        const double sine = std::sqrt(1 - cosine * cosine);
        const double phi = 3.14159265358979 * random.symmetric();
        const sim::Vector3 direction{sine * std::cos(phi), sine * std::sin(phi), cosine};
        const Found expected = search(arrangement, from, direction);
        if (expected.near_edge) continue;
        const auto entry = finder.find(from, direction);
        REQUIRE(entry.has_value() == expected.entry.has_value());
        if (!entry) continue;
        ++hits;
        REQUIRE(entry->crystal == expected.entry->crystal);
        REQUIRE(entry->distance_mm == Approx(expected.entry->distance_mm).epsilon(1e-9));
    }
    CHECK(hits > rays / 20);
}

void compare_with_search(const config::Scanner& scanner, int rays, double farthest) {
    compare_rays(geometry::HitFinder(scanner), *config::arrangement_of(scanner), rays, farthest);
}

// Every crystal in turn.
template <class Finder>
void compare_points(const Finder& finder, const config::Arrangement& arrangement, int points) {
    const double outer = finder.outer_radius_mm();
    const double middle = (finder.axial_low_mm() + finder.axial_high_mm()) / 2;
    const double half = (finder.axial_high_mm() - finder.axial_low_mm()) / 2;
    sim::Random random(4, sim::Purpose::check, 0);
    int inside = 0;
    for (int i = 0; i < points; ++i) {
        const double edge = 1.05 * outer;
        const sim::Vector3 point{edge * random.symmetric(), edge * random.symmetric(),
                                 middle + 1.1 * half * random.symmetric()};
        std::optional<std::uint32_t> expected;
        for (std::uint32_t c = 0; c < arrangement.crystal_count(); ++c) {
            const Crystal crystal(arrangement, c);
            const sim::Vector3 there = crystal.local(point);
            if (std::abs(there[0]) <= crystal.half_y && std::abs(there[1]) <= crystal.half_z &&
                there[2] >= 0 && there[2] <= crystal.length)
                expected = c;
        }
        REQUIRE(finder.crystal_at(point) == expected);
        if (!expected) continue;
        ++inside;
        REQUIRE(std::hypot(point[0], point[1]) <= outer);
    }
    CHECK(inside > points / 200);
}

void compare_points_with_search(const config::Scanner& scanner, int points) {
    compare_points(geometry::HitFinder(scanner), *config::arrangement_of(scanner), points);
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

TEST_CASE("any arrangement: the hit finder agrees with a search over all crystals", "[petsim][geometry]") {
    SECTION("uneven, with a cap and a tilted module") {
        compare_with_search(test::odd_scanner(), 4000, 60);
        compare_with_search(test::odd_scanner(), 4000, 12);
        compare_points_with_search(test::odd_scanner(), 8000);
    }
    SECTION("layers that widen outwards and reach between those of their neighbours") {
        const auto scanner = config::scanner_from_json(test::tapered_description());
        compare_with_search(scanner, 600, 15);
        compare_with_search(scanner, 600, 60);
        compare_points_with_search(scanner, 800);
    }
    SECTION("an insert in a larger ring, from within and from between them") {
        const auto scanner = config::load_scanner(test::example("scanners/insert.scanner.json"));
        compare_with_search(scanner, 150, 40);
        compare_with_search(scanner, 150, 200);
        compare_points_with_search(scanner, 150);
    }
    SECTION("the ring of the short form, without the arithmetic of rings") {
        const auto scanner = test::small_scanner();
        const auto arrangement = config::arrangement_of(scanner);
        const geometry::ModuleFinder finder(arrangement);
        compare_rays(finder, *arrangement, 1000, 30);
        compare_points(finder, *arrangement, 1000);
    }
}

TEST_CASE("any arrangement: the room around the axis ends at the nearest crystal", "[petsim][geometry]") {
    const auto scanner = test::odd_scanner();
    const geometry::HitFinder finder(scanner);
    CHECK(geometry::free_radius_mm(scanner, -8, 8) == Approx(14));
    CHECK(geometry::free_radius_mm(scanner, 20, 26) == 0);  // the cap lies across the axis
    CHECK(geometry::free_radius_mm(scanner, 12, 24) > 30);  // only the tilted module reaches there
    CHECK(std::isinf(geometry::free_radius_mm(scanner, 100, 200)));
    CHECK(finder.radius_mm() == 0);
    CHECK(geometry::free_radius_mm(test::small_scanner(), 100, 200) ==
          test::small_scanner().dimensions.ring_radius_mm);
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
