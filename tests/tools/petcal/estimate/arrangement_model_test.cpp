// Efficiencies and geometric factors in scanners of the long form.
#include "tools/petcal/estimate/pairs/arrangement_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "config/base/error.hpp"
#include "config/moments.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/drawn_pairs.hpp"
#include "tests/tools/petcal/estimate/exact_counts.hpp"
#include "tools/petcal/estimate/pairs/normalise.hpp"

using namespace petacq;

namespace {

estimate::CylinderScan scan_of(double radius_mm, double length_mm) {
    estimate::CylinderScan scan;
    scan.radius_mm = radius_mm;
    scan.length_mm = length_mm;
    scan.edge_mm = 0.1 * radius_mm;
    return scan;
}

bool any_pair(std::uint32_t a, std::uint32_t b) {
    return a != b;
}

/// Of front faces that detect all photons.
estimate::ArrangementModel::SolidAngle faces_of(const config::Scanner& scanner) {
    return [arrangement = scanner.arrangement](std::uint32_t a, std::uint32_t b) {
        const auto area = [&](std::uint32_t crystal) {
            const config::CrystalAddress at = arrangement->address(crystal);
            const config::CrystalLayer& layer = arrangement->layer_of(crystal);
            return layer.y.sizes[at.column] * layer.z.sizes[at.row];
        };
        const config::CrystalPlace p = arrangement->place(a);
        const config::CrystalPlace q = arrangement->place(b);
        const double square = square_of_distance(p, q);
        const config::Cosines cosines = cosines_of(p, q, std::sqrt(square));
        return area(a) * area(b) * cosines.a * cosines.b / square;
    };
}

estimate::NormalisationFitOptions few_counts() {
    estimate::NormalisationFitOptions options;
    options.efficiencies.min_counts = 10;
    options.rounds = 2;
    return options;
}

void check_drawn_pairs(const std::string& name, double radius, double length, int annihilations) {
    INFO(name);
    const config::Scanner scanner = test::example_of_long_form(name);
    const config::Arrangement& arrangement = *scanner.arrangement;
    const estimate::ArrangementModel model(scanner, scan_of(radius, length), any_pair, faces_of(scanner));
    test::DrawnPairs pairs(scanner, 3);
    // Front layers, and inserts, leave half of the photons to what lies behind them.
    for (std::uint32_t i = 0; i < arrangement.crystal_count(); ++i)
        if (arrangement.type_of(arrangement.modules()[arrangement.address(i).module]).layers.size() > 1 ||
            name == "insert")
            pairs.efficiency()[i] *= 0.6;
    estimate::LineCounts counts(model);
    for (int i = 0; i < annihilations; ++i) {
        const auto pair = pairs.next({0, 0, 0, radius, length});
        if (pair && model.counts(pair->a, pair->b)) counts.add(pair->a, pair->b, 1, 1);
    }
    counts.finish();
    const auto fit = fit_normalisation(model, counts, few_counts());
    // Within a kind of crystals, whose mean has the shadow of others in it.
    std::map<const config::CrystalLayer*, config::Moments> ratios;
    std::map<const config::CrystalLayer*, config::Moments> errors;
    for (std::uint32_t i = 0; i < arrangement.crystal_count(); ++i) {
        if (!std::isfinite(fit.crystals.error[i])) continue;
        const config::CrystalLayer* kind = &arrangement.layer_of(i);
        ratios[kind].add(fit.crystals.efficiency[i] / pairs.efficiency()[i]);
        errors[kind].add(fit.crystals.error[i]);
    }
    for (const auto& [kind, ratio] : ratios) {
        CAPTURE(kind->material, ratio.n, ratio.mean(), ratio.spread(), errors[kind].mean());
        CHECK(ratio.n > 100);
        CHECK(ratio.spread() / ratio.mean() < 1.5 * errors[kind].mean() + 0.03);
    }
}

struct ModelCase {
    const char* scanner;
    double radius_mm;
    double length_mm;
};

}  // namespace

TEST_CASE("arrangement model: each pair that counts is in the sums once") {
    const config::Scanner scanner = test::example_of_long_form("two-heads");
    const estimate::ArrangementModel model(scanner, scan_of(12, 40), any_pair, faces_of(scanner));
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    std::vector<double> weights(crystals);
    for (std::uint32_t i = 0; i < crystals; ++i)
        weights[i] = 1 + 0.1 * (i % 7);
    estimate::GeometricFactors factors = model.even_factors();
    for (std::size_t i = 0; i < factors.transaxial.size(); ++i)
        factors.transaxial[i] = 1 + 0.01 * static_cast<double>(model.transaxial().same[i] % 5);
    const estimate::PairSums sums = model.sums(weights, factors, 1);
    const estimate::PairSums shared = model.sums(weights, factors, 3);
    double of_fans = 0;
    for (std::uint32_t i = 0; i < crystals; ++i) {
        of_fans += weights[i] * sums.fans[i];
        REQUIRE(shared.fans[i] == Approx(sums.fans[i]));
    }
    const auto total = [](const std::vector<double>& values) {
        double all = 0;
        for (const double value : values)
            all += value;
        return all;
    };
    CHECK(of_fans / 2 == Approx(total(sums.transaxial)));
    CHECK(total(sums.axial) == Approx(total(sums.transaxial)));
    CHECK(total(shared.axial) == Approx(total(sums.axial)));
    double parts = 0;  // both orders hold the sum of two parts
    for (std::uint32_t a = 0; a < model.part_count(); ++a)
        for (std::uint32_t b = a; b < model.part_count(); ++b)
            parts += sums.parts[std::size_t{a} * model.part_count() + b];
    CHECK(parts == Approx(total(sums.transaxial)));

    std::size_t counted = 0;
    std::size_t listed = 0;
    for (std::uint32_t a = 0; a < crystals; ++a)
        for (std::uint32_t b = a + 1; b < crystals; ++b)
            counted += model.counts(a, b) && model.counts(b, a) ? 1 : 0;
    model.for_each_pair(1, [&](std::uint32_t, std::uint32_t) { ++listed; });
    CHECK(listed == counted);
    CHECK(listed > 10'000);
    std::size_t share = 0;
    model.for_each_pair(8, [&](std::uint32_t, std::uint32_t) { ++share; });
    CHECK(static_cast<double>(share) == Approx(static_cast<double>(listed) / 8).epsilon(0.05));
}

TEST_CASE("arrangement model: exact counts give the factor of every pair") {
    const config::Scanner scanner = test::example_of_long_form("two-heads");
    const estimate::ArrangementModel model(scanner, scan_of(25, 60), any_pair, faces_of(scanner));
    std::vector<double> efficiency;
    for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i)
        efficiency.push_back(0.8 + 0.1 * (i * 7 % 5));
    efficiency[77] = 0;
    estimate::GeometricFactors factors = model.even_factors();
    for (std::size_t i = 0; i < factors.axial.size(); ++i)
        factors.axial[i] = 1 + 0.03 * static_cast<double>(model.axial().same[i] % 4);
    estimate::NormalisationFitOptions options;
    options.rounds = 6;
    options.efficiencies.max_steps = 200;
    const auto fit = fit_normalisation(model, test::exact_counts(model, efficiency, factors, 1e9), options);
    CHECK(fit.crystals.dead == std::vector<std::uint32_t>{77});
    CHECK(fit.excess < 0.01);
    config::Moments ratio;
    model.for_each_pair(11, [&](std::uint32_t a, std::uint32_t b) {
        if (a == 77 || b == 77) return;
        const auto at = model.entries(a, b);
        const double expected = efficiency[a] * efficiency[b] * factors.axial[at.axial];
        ratio.add(fit.crystals.efficiency[a] * fit.crystals.efficiency[b] * fit.factors.axial[at.axial] *
                  fit.factors.transaxial[at.transaxial] / expected);
    });
    CHECK(ratio.n > 1000);
    CHECK(ratio.spread() / ratio.mean() < 0.01);
}

TEST_CASE("arrangement model: a share of the lines gives the efficiencies") {
    const config::Scanner scanner = test::example_of_long_form("hexagon");
    const estimate::ArrangementModel all(scanner, scan_of(22, 60), any_pair, faces_of(scanner));
    const estimate::ArrangementModel few(scanner, scan_of(22, 60), any_pair, faces_of(scanner), 2.5e5);
    REQUIRE(all.share() == 1);
    REQUIRE(few.share() > 10);
    std::vector<double> efficiency;
    for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i)
        efficiency.push_back(0.8 + 0.1 * (i * 7 % 5) + 0.1 * all.place_along(0, i));
    const std::vector<double> fans = all.sums(efficiency, all.even_factors(), 1).fans;
    estimate::NetCounts counts{{}, std::vector<double>(fans.size(), 1)};
    for (std::uint32_t i = 0; i < fans.size(); ++i)
        counts.net.push_back(1e6 * efficiency[i] * fans[i]);
    const auto found =
        crystal_efficiencies(counts, [&](std::span<const double> weights, std::span<double> out) {
            const std::vector<double> sums = few.sums(weights, few.even_factors(), 1).fans;
            std::copy(sums.begin(), sums.end(), out.begin());
        });
    config::Moments ratio;
    for (std::uint32_t i = 0; i < efficiency.size(); ++i)
        ratio.add(found.efficiency[i] / efficiency[i]);
    CHECK(ratio.spread() / ratio.mean() < 0.02);
}

TEST_CASE("arrangement model: a share of about a module gives efficiencies and factors") {
    const config::Scanner scanner = test::example_of_long_form("hexagon");
    const estimate::ArrangementModel all(scanner, scan_of(22, 60), any_pair, faces_of(scanner));
    const double crystals = scanner.geometry.crystal_count();
    const double module = crystals / static_cast<double>(scanner.arrangement->modules().size());
    const double share = module * GENERATE(0.5, 1.0);
    const estimate::ArrangementModel few(scanner, scan_of(22, 60), any_pair, faces_of(scanner),
                                         crystals * crystals / (2 * share));
    CAPTURE(share, few.share());
    const std::vector<double> even(scanner.geometry.crystal_count(), 1);
    const estimate::LineCounts counts = test::exact_counts(all, even, all.even_factors(), 1e7);
    const auto fit = fit_normalisation(few, counts, {});
    CAPTURE(fit.chi_square, fit.excess, fit.one_sided[0], fit.one_sided[1]);
    config::Moments ratio;
    for (const double efficiency : fit.crystals.efficiency)
        ratio.add(efficiency);
    CHECK(ratio.spread() < 0.2);  // each crystal has few lines
    CHECK(fit.excess < 0.1);
}

// Unequal blocks and an insert take longer.
TEST_CASE("arrangement model: drawn pairs give more efficiencies", "[.long]") {
    const auto [name, radius, length] =
        GENERATE(ModelCase{"unequal-blocks", 22, 45}, ModelCase{"insert", 24, 40});
    check_drawn_pairs(name, radius, length, 1'500'000);
}

TEST_CASE("arrangement model: drawn pairs give the efficiencies of the crystals") {
    const auto [name, radius, length] =
        GENERATE(ModelCase{"phoswich", 20, 40}, ModelCase{"box", 18, 60}, ModelCase{"two-rings", 22, 40});
    check_drawn_pairs(name, radius, length, 500'000);
}

TEST_CASE("arrangement model: a source that no line meets is refused") {
    const config::Scanner scanner = test::example_of_long_form("two-heads");
    CHECK_THAT(test::complaint([&] {
                   const estimate::ArrangementModel model(
                       scanner, scan_of(5, 20), [](std::uint32_t, std::uint32_t) { return false; },
                       faces_of(scanner));
               }),
               test::contains("no line between two crystals meets the cylinder"));
    estimate::CylinderScan scan = scan_of(5, 20);
    scan.centre_mm = {0, 0, 300};
    CHECK_THAT(test::complaint([&] {
                   const estimate::ArrangementModel model(scanner, scan, any_pair, faces_of(scanner));
               }),
               test::contains("no line between two crystals meets the cylinder"));
    CHECK_THAT(test::complaint([&] {
                   const estimate::ArrangementModel model(scanner, scan_of(0, 20), any_pair,
                                                          faces_of(scanner));
               }),
               test::contains("expected both above 0"));
}
