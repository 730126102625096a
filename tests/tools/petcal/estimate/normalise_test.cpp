// Efficiencies and geometric factors from counts that a known normalisation makes.
#include "tools/petcal/estimate/pairs/normalise.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/exact_counts.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/normalisation/normalisation.hpp"

using namespace petacq;
using normalisation::Normalisation;

namespace {

struct Truth {
    std::vector<double> efficiency;
    estimate::GeometricFactors factors;

    explicit Truth(const config::Geometry& g) : factors(estimate::GeometricFactors::even(g)) {
        std::mt19937 random(2);
        std::normal_distribution<double> efficiency_of(1, 0.14);
        for (std::uint32_t i = 0; i < g.crystal_count(); ++i)
            efficiency.push_back(std::max(0.4, efficiency_of(random)));
        efficiency[77] = 0;
        const std::uint32_t columns = g.crystals_per_module_y();
        for (std::size_t i = 0; i < factors.transaxial.size(); ++i) {
            const double a = std::abs(static_cast<double>(i / columns % columns) - (columns - 1) / 2.0);
            const double b = std::abs(static_cast<double>(i % columns) - (columns - 1) / 2.0);
            factors.transaxial[i] = 1 + 0.04 * a * b - 0.02 * a - 0.02 * b;
        }
        for (std::uint32_t a = 0; a < g.rings(); ++a) {
            for (std::uint32_t b = 0; b < g.rings(); ++b)
                factors.axial[a * g.rings() + b] =
                    1 + 0.02 * std::abs(static_cast<double>(a) - static_cast<double>(b));
        }
    }
    [[nodiscard]] Normalisation normalisation() const {
        return {{efficiency.begin(), efficiency.end()},
                {factors.transaxial.begin(), factors.transaxial.end()},
                {factors.axial.begin(), factors.axial.end()},
                std::nullopt,
                {},
                ""};
    }
};

Normalisation found(const estimate::NormalisationFit& fit) {
    Truth t(test::small_scanner().geometry);
    t.efficiency = fit.crystals.efficiency;
    t.factors = fit.factors;
    return t.normalisation();
}

estimate::NormalisationFitOptions two_threads() {
    estimate::NormalisationFitOptions options;
    options.threads = 2;
    return options;
}

}  // namespace

TEST_CASE("normalise: exact counts give the factor of every pair that counts") {
    const config::Scanner scanner = test::small_scanner();
    const config::Geometry& g = scanner.geometry;
    const estimate::FanModel model(
        scanner, {{1, -2, 3}, 18, 50, 0.0096, config::DepthOfInteraction::fixed(4), 2, 2, UINT32_MAX});
    const Truth truth(g);
    const auto fit = fit_normalisation(model, test::exact_counts(model, truth.efficiency, truth.factors, 1e9),
                                       two_threads());
    CHECK(fit.crystals.dead == std::vector<std::uint32_t>{77});
    CHECK(fit.axial.unseen == 0);
    CHECK(fit.transaxial.all == 5 * 100);
    CHECK(fit.transaxial.unseen > 100);
    CHECK(fit.transaxial.unseen < 400);
    CHECK(fit.excess < 0.005);

    const Normalisation right = truth.normalisation();
    const Normalisation made = found(fit);
    test::Moments ratio;
    model.for_each_pair(40, [&](std::uint32_t a, std::uint32_t b) {
        const double expected = factor_of(g, right, a, b);
        if (a != 77 && b != 77) ratio.add(factor_of(g, made, a, b) / expected);
    });
    CHECK(ratio.n > 10000);
    CHECK(ratio.sigma() / ratio.mean() < 0.005);

    // What all modules have in common is in the factors; the crystals have a mean of 1 in each column.
    const std::uint32_t columns = g.crystals_per_module_y();
    for (std::uint32_t column = 0; column < columns / 2; ++column) {
        test::Moments of_column;
        for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
            const std::uint32_t at = i % g.crystals_in_ring() % columns;
            if (i != 77 && (at == column || at == columns - 1 - column))
                of_column.add(fit.crystals.efficiency[i]);
        }
        CHECK(of_column.mean() == Approx(1).margin(0.01));
    }
}

TEST_CASE("normalise: counts of an even scanner give factors near 1, whatever their noise") {
    const config::Scanner scanner = test::small_scanner();
    const config::Geometry& g = scanner.geometry;
    const estimate::FanModel model(
        scanner, {{0, 0, 0}, 15, 50, 0, config::DepthOfInteraction::fixed(0), 1.6, 2, UINT32_MAX});
    Truth even(g);
    even.efficiency.assign(g.crystal_count(), 1);
    even.factors = estimate::GeometricFactors::even(g);
    estimate::LineCounts counts = test::exact_counts(model, even.efficiency, even.factors, 3e5);
    std::mt19937 random(6);
    for (estimate::NetCounts* c : {&counts.transaxial, &counts.axial}) {
        for (double& net : c->net) {
            if (net > 0) net = static_cast<double>(std::poisson_distribution<int>(net)(random));
        }
    }
    for (std::uint32_t a = 0; a < g.rings(); ++a) {  // one number for both orders
        for (std::uint32_t b = 0; b < a; ++b)
            counts.axial.net[b * g.rings() + a] = counts.axial.net[a * g.rings() + b];
    }
    const auto fit = fit_normalisation(model, counts, two_threads());
    CHECK(fit.error_axial > 0.02);
    for (const double factor : fit.factors.axial)
        REQUIRE(factor == Approx(1).margin(0.5 * fit.error_axial));
    for (const double factor : fit.factors.transaxial)
        REQUIRE(factor == Approx(1).margin(0.5 * fit.error_transaxial));
}

TEST_CASE("normalise: crystals that detect more on one side are told") {
    const config::Scanner scanner = test::small_scanner();
    const config::Geometry& g = scanner.geometry;
    const estimate::FanModel model(
        scanner, {{0, 0, 0}, 18, 50, 0, config::DepthOfInteraction::fixed(0), 2, 2, UINT32_MAX});
    Truth truth(g);
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        const auto out = crystal_place(scanner, i).outward;
        truth.efficiency[i] = 1 + 0.1 * out[1];
    }
    truth.factors = estimate::GeometricFactors::even(g);
    const auto fit = fit_normalisation(model, test::exact_counts(model, truth.efficiency, truth.factors, 1e8),
                                       two_threads());
    CHECK(fit.one_sided[0] == Approx(0).margin(0.01));
    CHECK(fit.one_sided[1] == Approx(0.2).margin(0.02));
    CHECK(fit.one_sided[2] == Approx(0).margin(0.01));
}
