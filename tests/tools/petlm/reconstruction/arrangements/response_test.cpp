// How many photons crystals absorb, against photons followed one by one.
#include "tools/geometry/pair_response.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/reconstruction/arrangements/photons.hpp"

namespace petacq::test {
namespace {

/// Two wide panels of two layers that face each other.
config::Scanner panels() {
    return config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "panels", "tick_ps": 10, "position_size": 64,
        "module_types": [{"name": "panel", "layers": [
            {"y": {"count": 25, "pitch_mm": 2}, "z": {"count": 25, "pitch_mm": 2}, "length_mm": 6},
            {"y": {"count": 25, "pitch_mm": 2}, "z": {"count": 25, "pitch_mm": 2}, "length_mm": 8, "gap_mm": 1,
             "material": "BGO"}],
            "units": [{"y": [0, 4]}, {"y": [5, 9]}, {"y": [10, 14]}, {"y": [15, 19]}, {"y": [20, 24]}]}],
        "modules": [{"type": "panel", "panel": {"radius_mm": 40, "count": 1, "pitch_mm": 50}},
                    {"type": "panel", "panel": {"radius_mm": 40, "angle_deg": 180, "count": 1, "pitch_mm": 50}}]})"));
}

config::Vector3 along_line(const config::Vector3& from, const config::Vector3& to) {
    config::Vector3 u = {to[0] - from[0], to[1] - from[1], to[2] - from[2]};
    const double length = std::hypot(u[0], u[1], u[2]);
    for (double& x : u)
        x /= length;
    return u;
}

}  // namespace

TEST_CASE("geometry: a crystal absorbs the share of a beam that its depth and the layers before it leave",
          "[geometry][arrangement]") {
    const config::Scanner scanner = panels();
    const geometry::PairResponse response(scanner.arrangement, true);
    CHECK_FALSE(response.any_in_the_way());
    const geometry::PairResponse at_the_front(scanner.arrangement, false);
    CHECK(at_the_front.of(3, 900) == Approx(response.area(3) * response.area(900)));
    Photons photons(scanner, 3);
    for (const std::uint32_t layer : {0U, 1U}) {
        for (const std::uint32_t column : {12U, 19U}) {
            const std::uint32_t a = scanner.arrangement->crystal({0, layer, 12, 12});
            const std::uint32_t b = scanner.arrangement->crystal({1, 0, column, 12});
            const auto at_a = scanner.arrangement->place(a).front_centre_mm;
            const auto at_b = scanner.arrangement->place(b).front_centre_mm;
            const config::Vector3 u = along_line(at_b, at_a);
            // Parallel photons, even over an area across the beam that all ways to the crystal cross.
            constexpr double half = 6;
            constexpr int count = 200'000;
            int found = 0;
            for (int i = 0; i < count; ++i) {
                const config::Vector3 from = {at_a[0] - 30 * u[0],
                                              at_a[1] - 30 * u[1] + half * (2 * photons.uniform() - 1),
                                              at_a[2] + half * (2 * photons.uniform() - 1)};
                found += photons.absorbed(from, u) == a ? 1 : 0;
            }
            const double cosine = std::abs(u[0]);
            const double of_b = response.area(b) * -std::expm1(-0.083 * 6 / cosine);
            const double expected = response.of(a, b) / of_b;  // mm^2
            CAPTURE(layer, column, cosine);
            CHECK(found * 4 * half * half / count == Approx(expected).epsilon(0.07));
            CHECK(response.of(a, b) == response.of(b, a));
        }
    }
}

TEST_CASE("geometry: modules in the way of others absorb their part", "[geometry][arrangement]") {
    const config::Scanner scanner = example_scanner("insert");
    const config::Arrangement& arrangement = *scanner.arrangement;
    const geometry::PairResponse response(scanner.arrangement, true);
    CHECK(response.any_in_the_way());
    Photons photons(scanner, 4);
    // Across the insert, beside it, and past an edge of it.
    double difference = 0;
    int pairs = 0;
    for (const std::uint32_t column : {0U, 3U, 6U, 8U, 11U}) {
        for (const std::uint32_t other : {18U, 20U, 22U, 26U, 28U}) {
            const std::uint32_t a = arrangement.crystal({0, 0, column, 4});
            const std::uint32_t b = arrangement.crystal({other, 0, 6, 5});
            const config::CrystalPlace at_a = arrangement.place(a);
            const config::CrystalPlace at_b = arrangement.place(b);
            const config::Vector3 u = along_line(at_a.front_centre_mm, at_b.front_centre_mm);
            double free = response.area(a) * response.area(b);
            for (const config::CrystalPlace& place : {at_a, at_b}) {
                const double cosine =
                    std::abs(u[0] * place.outward[0] + u[1] * place.outward[1] + u[2] * place.outward[2]);
                free *= -std::expm1(-0.087 * 20 / cosine);
            }
            constexpr int count = 3000;
            int passed = 0;
            for (int i = 0; i < count; ++i) {
                const auto on_face = [&](const config::CrystalPlace& place, std::uint32_t module) {
                    const config::Module& m = arrangement.modules()[module];
                    const double y = 4 * (photons.uniform() - 0.5);
                    const double z = 4 * (photons.uniform() - 0.5);
                    config::Vector3 at = place.front_centre_mm;
                    for (std::size_t axis = 0; axis < 3; ++axis)
                        at[axis] += y * m.along_y[axis] + z * m.along_z[axis] - 1e-6 * m.outward[axis];
                    return at;
                };
                const config::Vector3 from = on_face(at_a, 0);
                const auto crystal = photons.absorbed(from, along_line(from, on_face(at_b, other)));
                passed +=
                    crystal &&
                            arrangement.type_of(arrangement.modules()[arrangement.address(*crystal).module])
                                    .name == "insert"
                        ? 0
                        : 1;
            }
            const double found = response.of(a, b) / free - double{1} * passed / count;
            CAPTURE(column, other, passed);
            // Four lines stand for all: rough where an edge of a module covers a part of a crystal.
            CHECK(std::abs(found) < 0.2);
            difference += found;
            ++pairs;
        }
    }
    CHECK(difference / pairs == Approx(0).margin(0.04));
}

}  // namespace petacq::test
