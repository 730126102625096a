// A normalisation from one source against the counts of another one: its factors are those of the scanner.
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/estimate/pairs/fan_model.hpp"
#include "tools/petcal/estimate/pairs/normalise.hpp"

using namespace petacq;

namespace {

constexpr double absorption_per_mm = 0.083;

/// Pairs of a source in a scanner whose crystals absorb by path.
std::vector<test::SimulatedPair> scan(const config::Scanner& scanner, const sim::Detector& detector,
                                      const estimate::CylinderScan& source, double mbq) {
    sim::Options o = test::cylinder_scan(source.radius_mm, source.length_mm, mbq, 12, 0.65);
    o.activity[0].at = source.centre_mm;
    o.physics.scatter = 0;
    o.crystals.model = sim::CrystalModel::depth;
    o.crystals.attenuation_per_cm = 10 * absorption_per_mm;
    return test::simulate_pairs(scanner, o, detector, 300);
}

estimate::LineCounts counts_of(const estimate::FanModel& model,
                               const std::vector<test::SimulatedPair>& pairs) {
    estimate::LineCounts counts(model);
    for (const test::SimulatedPair& p : pairs) {
        if (!p.random && model.counts(p.a, p.b)) counts.add(p.a, p.b, 1, 1);
    }
    counts.finish();
    return counts;
}

/// Deviation of the counts from those expected beyond their noise, rms, relative, for classes of that many.
double deviation(const estimate::NetCounts& counts, const std::vector<double>& sums, double least) {
    double net = 0;
    double all = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        net += counts.net[i];
        all += sums[i];
    }
    test::Moments beyond;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double expected = net / all * sums[i];
        if (expected < least) continue;
        beyond.add(std::pow(counts.net[i] / expected - 1, 2) - 1 / expected);
    }
    REQUIRE(beyond.n > 50);
    return std::sqrt(std::max(0.0, beyond.mean()));
}

}  // namespace

TEST_CASE("normalisation: that of a large cylinder predicts the counts of a small one off the axis",
          "[.long]") {
    const config::Scanner scanner = test::small_scanner();
    sim::DetectorModel model;
    model.efficiency_spread = 0.14;
    model.spot_sigma = 0;
    model.spot_jitter = 0;
    model.time_spread_ps = 0;
    const sim::Detector detector = sim::make_detector(scanner, model);
    const auto cylinder = [](config::Vector3 at, double radius, double length) {
        estimate::CylinderScan c{at, radius, length};
        c.depth = config::DepthOfInteraction::fixed(5);
        c.edge_mm = 1.6;
        c.min_module_difference = 2;
        return c;
    };
    const auto large = cylinder({0, 0, 0}, 20, 60);
    const auto small = cylinder({8, 0, 5}, 8, 30);
    const estimate::FanModel of_large(scanner, large);
    estimate::NormalisationFitOptions options;
    options.threads = 2;
    const auto fit =
        fit_normalisation(of_large, counts_of(of_large, scan(scanner, detector, large, 3)), options);
    CAPTURE(fit.crystals.median_counts, fit.error_transaxial, fit.error_axial);
    CHECK(fit.chi_square > 0.8);
    CHECK(fit.chi_square < 1.1);

    const estimate::FanModel of_small(scanner, small);
    const auto counts = counts_of(of_small, scan(scanner, detector, small, 3));
    const auto sums = of_small.sums(fit.crystals.efficiency, fit.factors, 2);
    const auto none =
        of_small.sums(fit.crystals.efficiency, estimate::GeometricFactors::even(scanner.geometry), 2);
    const double without = deviation(counts.axial, none.axial, 1000);
    const double axial = deviation(counts.axial, sums.axial, 1000);
    const double transaxial = deviation(counts.transaxial, sums.transaxial, 1000);
    const double units = deviation(counts.parts, sums.parts, 300);
    std::printf(
        "deviation beyond counts: axial %.2f %% (without factors %.2f %%), transaxial %.2f %%, pairs of "
        "units %.2f %%\n",
        100 * axial, 100 * without, 100 * transaxial, 100 * units);
    CHECK(without > 0.04);
    CHECK(axial < 0.02);
    CHECK(transaxial < 0.02);
    CHECK(units < 0.02);
}
