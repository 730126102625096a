// The sums over fans against sums over all pairs of crystals, one by one.
#include "tools/petcal/derive/fan_model.hpp"

#include <algorithm>
#include <cmath>

#include "config/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/derive/known_source.hpp"

using namespace petacq;

namespace {

struct Module {
    std::uint32_t number;
    std::uint32_t ring;
};

double expected(const config::Scanner& scanner, const derive::CylinderScan& scan, std::uint32_t i,
                std::uint32_t j) {
    const config::Geometry& g = scanner.geometry;
    const auto module_of = [&](std::uint32_t k) {
        return Module{k % g.crystals_in_ring() / g.crystals_per_module_y(), k / g.crystals_in_ring()};
    };
    const auto [module_i, ring_i] = module_of(i);
    const auto [module_j, ring_j] = module_of(j);
    const std::uint32_t apart = std::max(module_i, module_j) - std::min(module_i, module_j);
    if (std::min(apart, g.modules_in_ring() - apart) < scan.min_module_difference) return 0;
    if (std::max(ring_i, ring_j) - std::min(ring_i, ring_j) > scan.max_ring_difference) return 0;
    const auto a = crystal_place(scanner, i);
    const auto b = crystal_place(scanner, j);
    const auto from = point_at_depth(a, scan.depth_mm);
    const auto to = point_at_depth(b, scan.depth_mm);
    derive::KnownSource source{scan.centre_mm, scan.centre_mm, scan.radius_mm};
    source.from[2] -= scan.length_mm / 2;
    source.to[2] += scan.length_mm / 2;
    const auto chord = chord_of(source, from, to);
    if (!chord) return 0;
    double square = 0;
    double out_a = 0;
    double out_b = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        const double d = to[k] - from[k];
        square += d * d;
        out_a -= d * a.outward[k];
        out_b += d * b.outward[k];
    }
    if (out_a <= 0 || out_b <= 0) return 0;
    const double length = chord->end_mm - chord->begin_mm;
    return length / square * (out_a * out_b / square) * std::exp(-scan.attenuation_per_mm * length);
}

}  // namespace

TEST_CASE("fan sums are those over all pairs") {
    config::Scanner scanner = test::small_scanner();
    scanner.geometry.crystals = {1, 2, 3};  // 864 crystals
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    derive::CylinderScan scan{{3, -4, 2}, 12, 20};
    SECTION("plain") {}
    SECTION("attenuation, depth and conditions") {
        scan.attenuation_per_mm = 0.0096;
        scan.depth_mm = 4;
        scan.min_module_difference = 5;
        scan.max_ring_difference = 7;
    }
    std::vector<double> weights(crystals);
    for (std::uint32_t i = 0; i < crystals; ++i)
        weights[i] = 1 + 0.5 * std::sin(i);
    const derive::FanModel model(scanner, scan);
    std::vector<double> found(crystals);
    model.fan_sums(weights, found);
    for (std::uint32_t i = 0; i < crystals; i += 17) {
        double sum = 0;
        for (std::uint32_t j = 0; j < crystals; ++j) {
            if (j != i) sum += weights[j] * expected(scanner, scan, i, j);
        }
        CAPTURE(i);
        CHECK(found[i] == Approx(sum).epsilon(1e-9));
    }
    std::vector<double> threaded(crystals);
    model.fan_sums(weights, threaded, 3);
    for (std::uint32_t i = 0; i < crystals; ++i)
        REQUIRE(threaded[i] == Approx(found[i]).epsilon(1e-12));
    CHECK_THROWS_AS(model.fan_sums(weights, std::span(found).first(5)), std::invalid_argument);
}

TEST_CASE("a model needs a cylinder between the crystals") {
    const config::Scanner scanner = test::small_scanner();
    CHECK_THROWS_AS(derive::FanModel(scanner, {{0, 0, 0}, 0, 20}), config::Error);
    CHECK_THROWS_AS(derive::FanModel(scanner, {{0, 0, 500}, 10, 20}), config::Error);
    CHECK_THROWS_AS(derive::FanModel(scanner, {{200, 0, 0}, 10, 20}), config::Error);
}
