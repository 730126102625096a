// Efficiencies against those of the simulator's true detector, and the model of the fans against sums over
// all pairs.
#include "tools/petcal/derive/efficiencies.hpp"

#include <cmath>
#include <iostream>
#include <set>

#include "config/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/derive/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/derive/fan_model.hpp"
#include "tools/petcal/derive/known_source.hpp"

using namespace petacq;

namespace {

sim::Detector uneven_detector() {
    sim::DetectorModel model;
    model.seed = 9;
    model.efficiency_spread = 0.15;
    model.time_spread_ps = 0;
    return sim::make_detector(test::small_scanner(), model);
}

derive::FanCounts fan_counts(const std::vector<test::SimulatedPair>& pairs, std::size_t crystals) {
    derive::FanCounts out;
    out.net.assign(crystals, 0);
    for (const test::SimulatedPair& p : pairs) {
        if (p.random) continue;
        out.net[p.a] += 1;
        out.net[p.b] += 1;
    }
    out.variance = out.net;
    return out;
}

derive::FanSums sums_of(const derive::FanModel& model) {
    return [&model](std::span<const double> weights, std::span<double> sums) {
        model.fan_sums(weights, sums, 2);
    };
}

}  // namespace

TEST_CASE("efficiencies") {
    const config::Scanner scanner = test::small_scanner();
    sim::Detector detector = uneven_detector();
    for (double duration : {3.0}) {
    const auto pairs = test::simulate_pairs(scanner, test::cylinder_scan(15, 50, 5, duration), detector, 80);
    const auto counts = fan_counts(pairs, detector.crystals.size());
    const derive::FanModel model(scanner, {{0, 0, 0}, 15, 50});
    const auto found = derive::crystal_efficiencies(counts, sums_of(model));
    test::Moments ratio;
    test::Moments pull;
    double expected = 0;
    for (std::size_t i = 0; i < found.efficiency.size(); ++i) {
        const double r = found.efficiency[i] / double{detector.crystals[i].efficiency};
        ratio.add(r);
        pull.add((r - 1) / found.error[i]);
        expected += found.error[i] * found.error[i];
    }
    WARN("median " << found.median_counts << " steps " << found.steps << " error " << ratio.sigma() / ratio.mean()
         << " expected " << std::sqrt(expected / ratio.n) << " pull " << pull.sigma());
    for (std::uint32_t ring = 0; ring < 24; ++ring) {
        test::Moments m;
        for (std::uint32_t c = 0; c < 120; ++c) m.add(found.efficiency[ring*120+c]/double{detector.crystals[ring*120+c].efficiency});
        std::cout << ring << ":" << m.mean() << " ";
    }
    std::cout << "\n";
    for (std::uint32_t col = 0; col < 10; ++col) {
        test::Moments m;
        for (std::uint32_t c = 0; c < 2880; ++c) if (c%10==col) m.add(found.efficiency[c]/double{detector.crystals[c].efficiency});
        std::cout << col << ":" << m.mean() << " ";
    }
    }
}
