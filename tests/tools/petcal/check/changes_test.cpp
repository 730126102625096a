// Changes of resolutions and efficiencies against those that were made.
#include "tools/petcal/check/changes.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "config/make_calibration.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/true_spectra.hpp"
#include "tools/petcal/check/findings.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;
using petcal::Change;

namespace {

/// Twelve modules of two units of 4 x 5 crystals around a ring of 40 mm.
config::Scanner twelve_modules() {
    config::Scanner s;
    s.name = "twelve";
    s.geometry = {12, {1, 1, 1}, {1, 1, 2}, {1, 4, 5}, 12, 2, 32};
    s.tick_ps = 15.625;
    s.dimensions = {20, 2, 2, 12, 0.4, 0.5, 1};
    return s;
}

/// A run of about so many frames for each crystal; `shares`: [module] of the singles.
petcal::DailyRun run_of(const sim::Detector& detector, double frames, const std::vector<double>& shares,
                        std::uint64_t seed) {
    petcal::DailyRun run;
    run.scanner = twelve_modules();
    const config::Geometry& g = run.scanner.geometry;
    run.spectra = test::true_spectra(g, detector, sim::calibration_of(run.scanner, detector), frames);
    run.sums = daemon::DetectorSums::none(g);
    run.singles.resize(g.crystal_count());
    run.module_true.resize(std::size_t{g.bdm_count} * g.bdm_count);
    std::mt19937_64 random(seed);
    const auto crystals = daemon::crystals_by_unit(g);
    for (std::size_t i = 0; i < crystals.size(); ++i) {
        const std::size_t unit = i / g.crystals_per_du();
        const double mean = frames * shares[unit / g.du_count];
        run.singles[crystals[i]] = static_cast<double>(std::poisson_distribution<>(mean)(random));
        run.sums.units[unit].singles += run.singles[crystals[i]];
    }
    return run;
}

sim::Detector made_detector() {
    sim::DetectorModel model;
    model.seed = 31;
    model.spot_sigma = 0.2;
    return sim::make_detector(twelve_modules(), model);
}

const std::vector<double> even(12, 1);  // NOLINT(cert-err58-cpp)

}  // namespace

// Of single crystals with so few counts the widths are too small, and their changes 0.7 of the true ones.
TEST_CASE("changes of resolutions are the true ones", "[check]") {
    const config::Geometry g = twelve_modules().geometry;
    sim::Detector detector = made_detector();
    const auto reference = run_of(detector, 800, even, 1);
    const std::vector<double> made{0, 0, 0, 0.3, 0, 0.5, 0, 0, -0.17, 0, 0, 0};
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        for (std::uint32_t du = 0; du < g.du_count; ++du)
            for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
                detector.crystals[g.crystal(bdm, du, local)].energy_resolution *=
                    static_cast<float>(1 + made[bdm]);
    const auto changes = changes_between(reference, run_of(detector, 700, even, 2));
    REQUIRE(changes.resolutions.size() == 24);
    for (std::size_t bdm = 0; bdm < made.size(); ++bdm) {
        const Change& first = changes.resolutions[2 * bdm];
        const Change& second = changes.resolutions[2 * bdm + 1];
        INFO(bdm << ": " << first.size << " and " << second.size << ", error " << first.error);
        REQUIRE(first.known());
        CHECK(first.error < 0.06);
        const double found = (first.size + second.size) / 2;
        CHECK(std::abs(found - made[bdm]) <
              std::max(0.2 * std::abs(made[bdm]), 4 * first.error / std::sqrt(2)));
        if (made[bdm] >= 0.3) CHECK(found == Approx(made[bdm]).epsilon(0.2));
    }
}

TEST_CASE("a module that is 10 % less efficient is found, though the source has moved", "[check]") {
    const sim::Detector detector = made_detector();
    const auto reference = run_of(detector, 1200, even, 3);
    std::vector<double> shares;
    for (int bdm = 0; bdm < 12; ++bdm)
        shares.push_back(0.8 * (1 + 0.1 * std::cos(2 * std::numbers::pi * (bdm - 2.3) / 12)));
    shares[7] *= 0.9;
    const auto changes = changes_between(reference, run_of(detector, 1200, shares, 4));
    REQUIRE(changes.efficiencies.size() == 12);
    for (std::size_t bdm = 0; bdm < 12; ++bdm) {
        const Change& found = changes.efficiencies[bdm];
        INFO(bdm << ": " << found.size << ", error " << found.error);
        CHECK(found.error < 0.012);
        CHECK(found.size == Approx(bdm == 7 ? -0.1 : 0).margin(4 * found.error));
    }
    const auto findings = find_in_changes(twelve_modules().geometry, changes, {});
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].subject == petcal::CheckFinding::Subject::efficiency);
    CHECK(findings[0].bdm == 7U);
}
