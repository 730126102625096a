// The scatter that a normalisation leaves out, against the truth of the simulator.
#include "tools/petcal/steps/source_scatter.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/estimate/pairs/fan_model.hpp"

using namespace petacq;

TEST_CASE("scatter in the source: what is left of the counts are the true pairs") {
    const config::Scanner scanner = test::small_scanner();
    sim::DetectorModel even;
    even.efficiency_spread = 0;
    even.spot_sigma = 0;
    even.spot_jitter = 0;
    even.time_spread_ps = 0;
    constexpr double radius_mm = 20;
    constexpr double length_mm = 60;
    constexpr double z_mm = 12;
    sim::Options o = test::cylinder_scan(radius_mm, length_mm, 2, 0.2, 1);
    o.activity[0].at = {0, 0, z_mm};
    o.object = sim::ScatteringObject{{{0, 0, z_mm}, radius_mm, length_mm}};
    o.crystals.model = sim::CrystalModel::surface;

    estimate::CylinderScan scan{{0, 0, z_mm}, radius_mm, length_mm, 0.0096};
    scan.edge_mm = 2;
    scan.min_module_difference = 2;
    const estimate::FanModel model(scanner, scan);
    estimate::LineCounts counts(model);
    estimate::LineCounts trues(model);
    estimate::LineCounts scattered(model);
    for (const test::SimulatedPair& p :
         test::simulate_pairs(scanner, o, sim::make_detector(scanner, even), 300)) {
        if (p.random || !model.counts(p.a, p.b)) continue;
        counts.add(p.a, p.b, 1, 1);
        (p.scattered ? scattered : trues).add(p.a, p.b, 1, 1);
    }
    REQUIRE(scattered.total > 1000);
    CAPTURE(scattered.total, trues.total);

    gpu::CoincidenceRules rules;
    rules.min_module_difference = 2;
    const std::vector<double> alike(scanner.geometry.crystal_count(), 1);
    net::WorkerPool pool(2);
    const double found =
        petcal::subtract_scatter(scanner, model, {rules, {350, 650, 0.12, {}}, alike}, counts, pool);
    CHECK(found == Approx(scattered.total).epsilon(0.04));
    CHECK(counts.total == Approx(trues.total).epsilon(0.01));

    // By crystal, as far as its counts tell.
    double squares = 0;
    for (std::size_t i = 0; i < alike.size(); ++i)
        squares += std::pow(counts.crystals.net[i] - trues.crystals.net[i], 2);
    CHECK(squares / (2 * scattered.total) < 1.2);
}
