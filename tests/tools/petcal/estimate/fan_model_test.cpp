// The sums of the model against sums over all pairs of crystals, one by one.
#include "tools/petcal/estimate/pairs/fan_model.hpp"

#include <algorithm>
#include <cmath>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"

using namespace petacq;

namespace {

struct Module {
    std::uint32_t number;
    std::uint32_t ring;
};

/// Half of the chord of the cylinder's circle, mean over the faces of both crystals and their depths.
double mean_half_chord(const config::Scanner& scanner, const estimate::CylinderScan& scan,
                       const config::CrystalPlace& a, const config::CrystalPlace& b) {
    const std::vector<double> depths =
        scan.depth.typical_mm() > 0 ? std::vector{1 / 3.0, 1.0, 5 / 3.0} : std::vector{0.0};
    const auto points = [&](const config::CrystalPlace& crystal) {
        std::vector<config::Vector3> out;
        for (const double depth : depths) {
            for (const double part : {-1 / 3.0, 0.0, 1 / 3.0}) {
                config::Vector3 p = point_at_depth(crystal, depth * scan.depth.typical_mm());
                p[0] -= part * scanner.dimensions.crystal_pitch_y_mm * crystal.outward[1];
                p[1] += part * scanner.dimensions.crystal_pitch_y_mm * crystal.outward[0];
                p[2] = 0;
                out.push_back(p);
            }
        }
        return out;
    };
    const config::Vector3 middle{scan.centre_mm[0], scan.centre_mm[1], 0};
    const estimate::KnownSource circle{middle, middle, scan.radius_mm};
    double sum = 0;
    double n = 0;
    for (const auto& from : points(a)) {
        for (const auto& to : points(b)) {
            const auto chord = chord_of(circle, from, to);
            sum += chord ? (chord->end_mm - chord->begin_mm) / 2 : 0;
            n += 1;
        }
    }
    return sum / n;
}

double expected(const config::Scanner& scanner, const estimate::CylinderScan& scan, std::uint32_t i,
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
    double square = 0;
    double out_a = 0;
    double out_b = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        const double d = b.front_centre_mm[k] - a.front_centre_mm[k];
        square += d * d;
        out_a -= d * a.outward[k];
        out_b += d * b.outward[k];
    }
    if (out_a <= 0 || out_b <= 0) return 0;
    const auto from = point_at_depth(a, scan.depth.typical_mm());
    const auto to = point_at_depth(b, scan.depth.typical_mm());
    const double dx = to[0] - from[0];
    const double dy = to[1] - from[1];
    const double dz = to[2] - from[2];
    const double across = std::hypot(dx, dy);
    const double nearest =
        ((scan.centre_mm[0] - from[0]) * dx + (scan.centre_mm[1] - from[1]) * dy) / (across * across);
    const double away =
        std::hypot(from[0] + nearest * dx - scan.centre_mm[0], from[1] + nearest * dy - scan.centre_mm[1]);
    const double at_z = std::abs(from[2] + nearest * dz - scan.centre_mm[2]);
    if (away >= scan.radius_mm - scan.edge_mm || at_z > scan.length_mm / 2 - scan.edge_mm) return 0;
    const double half = mean_half_chord(scanner, scan, a, b) / across;
    // Steps along the line tell how much of the chord lies between the ends of the cylinder.
    constexpr int steps = 1000;
    int inside = 0;
    for (int step = 0; step < steps; ++step) {
        const double t = nearest + half * ((2 * step + 1.0) / steps - 1);
        inside += std::abs(from[2] + t * dz - scan.centre_mm[2]) <= scan.length_mm / 2 ? 1 : 0;
    }
    const double length = 2 * half * std::hypot(across, dz) * inside / steps;
    return length / square * (out_a * out_b / square) * std::exp(-scan.attenuation_per_mm * length);
}

}  // namespace

TEST_CASE("sums of the model are those over all pairs") {
    config::Scanner scanner = test::small_scanner();
    scanner.geometry.blocks = {1, 2, 2};
    scanner.geometry.crystals = {1, 2, 2};  // 384 crystals
    const config::Geometry& g = scanner.geometry;
    const std::uint32_t crystals = g.crystal_count();
    estimate::CylinderScan scan{{3, -4, 2}, 12, 20};
    SECTION("plain") {}
    SECTION("attenuation, depth and conditions") {
        scan.attenuation_per_mm = 0.0096;
        scan.depth = config::DepthOfInteraction::fixed(4);
        scan.edge_mm = 2;
        scan.min_module_difference = 5;
        scan.max_ring_difference = 5;
    }
    std::vector<double> weights(crystals);
    for (std::uint32_t i = 0; i < crystals; ++i)
        weights[i] = 1 + 0.5 * std::sin(i);
    auto factors = estimate::GeometricFactors::even(g);
    for (std::size_t i = 0; i < factors.transaxial.size(); ++i)
        factors.transaxial[i] = 1 + 0.3 * std::cos(static_cast<double>(i));
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b < g.rings(); ++b)
            factors.axial[a * g.rings() + b] = 1 + 0.2 * std::sin(a * b);
    }
    const estimate::FanModel model(scanner, scan);
    const estimate::PairSums found = model.sums(weights, factors, 1);

    std::vector<double> fans(crystals);
    std::vector<double> transaxial(factors.transaxial.size());
    std::vector<double> axial(factors.axial.size());
    std::vector<double> units(found.parts.size());
    const std::uint32_t in_ring = g.crystals_in_ring();
    std::size_t counting = 0;
    for (std::uint32_t i = 0; i < crystals; ++i) {
        for (std::uint32_t j = 0; j < i; ++j) {
            const double per_pair = expected(scanner, scan, i, j);
            if (model.counts(i, j) != (per_pair > 0)) FAIL("crystals " << i << " and " << j);
            REQUIRE(model.counts(j, i) == model.counts(i, j));
            if (per_pair == 0) continue;
            ++counting;
            const std::size_t across = normalisation::transaxial_class(g, i % in_ring, j % in_ring);
            const std::uint32_t ring_i = i / in_ring;
            const std::uint32_t ring_j = j / in_ring;
            const double value =
                per_pair * factors.transaxial[across] * factors.axial[ring_i * g.rings() + ring_j];
            fans[i] += value * weights[j];
            fans[j] += value * weights[i];
            const double both = value * weights[i] * weights[j];
            transaxial[across] += both;
            axial[ring_i * g.rings() + ring_j] += both;
            if (ring_i != ring_j) axial[ring_j * g.rings() + ring_i] += both;
            const std::uint32_t unit_i = model.part_of(i);
            const std::uint32_t unit_j = model.part_of(j);
            units[unit_i * model.part_count() + unit_j] += both;
            if (unit_i != unit_j) units[unit_j * model.part_count() + unit_i] += both;
        }
    }
    const auto same = [](const std::vector<double>& sums, const std::vector<double>& slow) {
        REQUIRE(sums.size() == slow.size());
        for (std::size_t i = 0; i < slow.size(); ++i) {
            CAPTURE(i);
            REQUIRE(sums[i] == Approx(slow[i]).epsilon(3e-3).margin(1e-12));
        }
    };
    same(found.fans, fans);
    same(found.transaxial, transaxial);
    same(found.axial, axial);
    same(found.parts, units);
    const estimate::PairSums threaded = model.sums(weights, factors, 3);
    same(threaded.fans, found.fans);
    same(threaded.parts, found.parts);
    CHECK_THROWS_AS(model.sums(std::span(weights).first(5), factors, 1), std::invalid_argument);

    std::size_t all = 0;
    std::size_t third = 0;
    model.for_each_pair(1, [&](std::uint32_t, std::uint32_t) { ++all; });
    model.for_each_pair(3, [&](std::uint32_t, std::uint32_t) { ++third; });
    CHECK(all == counting);
    CHECK(static_cast<double>(third) == Approx(static_cast<double>(all) / 3).epsilon(0.05));
}

TEST_CASE("a model needs a cylinder between the crystals") {
    const config::Scanner scanner = test::small_scanner();
    CHECK_THROWS_AS(estimate::FanModel(scanner, {{0, 0, 0}, 0, 20}), config::Error);
    CHECK_THROWS_AS(estimate::FanModel(scanner, {{0, 0, 500}, 10, 20}), config::Error);
    CHECK_THROWS_AS(estimate::FanModel(scanner, {{200, 0, 0}, 10, 20}), config::Error);
}
