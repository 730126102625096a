// Efficiencies against those of the simulator's true detector.
#include "tools/petcal/estimate/pairs/efficiencies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/estimate/pairs/fan_model.hpp"

using namespace petacq;

namespace {

sim::Detector uneven_detector(double spot_sigma) {
    sim::DetectorModel model;
    model.seed = 9;
    model.efficiency_spread = 0.15;
    model.time_spread_ps = 0;
    model.spot_sigma = spot_sigma;
    return sim::make_detector(test::small_scanner(), model);
}

/// Less the randoms of another scan of a quarter of the length, as delayeds of weight 4.
estimate::NetCounts fan_counts(const estimate::FanModel& model, const std::vector<test::SimulatedPair>& pairs,
                               const std::vector<test::SimulatedPair>& other) {
    estimate::NetCounts out;
    out.net.assign(model.geometry().crystal_count(), 0);
    out.variance = out.net;
    const auto add = [&](const test::SimulatedPair& p, double weight) {
        if (!model.counts(p.a, p.b)) return;
        for (const std::uint32_t crystal : {p.a, p.b}) {
            out.net[crystal] += weight;
            out.variance[crystal] += weight * weight;
        }
    };
    for (const test::SimulatedPair& p : pairs)
        add(p, 1);
    for (const test::SimulatedPair& p : other) {
        if (p.random) add(p, -4);
    }
    return out;
}

estimate::FanSums sums_of(const estimate::FanModel& model) {
    return [&model](std::span<const double> weights, std::span<double> sums) {
        const auto fans = model.sums(weights, estimate::GeometricFactors::even(model.geometry()), 2).fans;
        std::copy(fans.begin(), fans.end(), sums.begin());
    };
}

/// g of a ring of 40 crystals: each sees the opposite one and `beside` on each side of it.
estimate::FanSums ring_of(std::size_t beside) {
    return [beside](std::span<const double> weights, std::span<double> sums) {
        for (std::size_t i = 0; i < 40; ++i) {
            sums[i] = 0;
            for (std::size_t j = i + 20 - beside; j <= i + 20 + beside; ++j)
                sums[i] += (2 + std::cos(static_cast<double>(j - i))) * weights[j % 40];
        }
    };
}

const estimate::FanSums ring_sums = ring_of(10);

std::string refusal(const estimate::NetCounts& counts, const estimate::FanSums& sums) {
    try {
        (void)estimate::crystal_efficiencies(counts, sums);
    } catch (const config::Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("efficiencies: 1.2 / sqrt(N), with dead crystals and a dead detector unit") {
    const config::Scanner scanner = test::small_scanner();
    const config::Geometry& g = scanner.geometry;
    const double spot_sigma = GENERATE(0.0, 0.25);
    sim::Detector detector = uneven_detector(spot_sigma);
    std::set<std::uint32_t> dead{0, 100, 2879};
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
        dead.insert(g.crystal(7, 2, local));
    for (const std::uint32_t k : dead)
        detector.crystals[k].efficiency *= 0.05F;
    constexpr std::uint64_t window = 80;
    // The dead ones show in fewer pairs than the efficiencies of the others need.
    sim::Options scan = test::cylinder_scan(15, 50, 5, spot_sigma > 0 ? 0.7 : 1.4, 0.6);
    const auto pairs = test::simulate_pairs(scanner, scan, detector, window);
    scan.seed += 1;
    scan.duration_s /= 4;
    const auto other = test::simulate_pairs(scanner, scan, detector, window);
    const estimate::FanModel model(scanner, {{0, 0, 0}, 15, 50});
    const auto counts = fan_counts(model, pairs, other);
    const auto found = estimate::crystal_efficiencies(counts, sums_of(model));
    CHECK(std::set(found.dead.begin(), found.dead.end()) == dead);
    CHECK(found.unseen.empty());
    if (spot_sigma > 0) return;  // the efficiencies are then those of the assigned events

    test::Moments ratio;
    test::Moments mean;
    for (std::uint32_t i = 0; i < found.efficiency.size(); ++i) {
        if (dead.count(i) != 0) continue;
        mean.add(found.efficiency[i]);
        ratio.add(found.efficiency[i] / double{detector.crystals[i].efficiency});
    }
    CHECK(mean.mean() == Approx(1));
    CAPTURE(found.steps);
    CHECK(found.median_counts > 300);
    CHECK(ratio.sigma() / ratio.mean() < 1.2 / std::sqrt(found.median_counts));
    CHECK(ratio.sigma() / ratio.mean() > 0.8 / std::sqrt(found.median_counts));
    test::Moments pulls;
    for (std::uint32_t i = 0; i < found.efficiency.size(); ++i) {
        if (dead.count(i) != 0) continue;
        const double r = found.efficiency[i] / double{detector.crystals[i].efficiency} / ratio.mean();
        pulls.add((r - 1) / found.error[i]);
    }
    CHECK(pulls.sigma() == Approx(1).epsilon(0.1));
}

TEST_CASE("efficiencies: exact counts give exact efficiencies, whatever the unit of the model") {
    // With few partners, a pattern that is high at phi and low at phi + pi hardly shows.
    const estimate::FanSums ring = ring_of(GENERATE(10, 3));
    std::vector<double> truth(40);
    for (std::size_t i = 0; i < 40; ++i)
        truth[i] = i == 17 ? 0
                           : 1 + 0.4 * std::sin(static_cast<double>(i * i)) +
                                 0.1 * std::cos(static_cast<double>(i) / 40 * 2 * std::numbers::pi);
    estimate::NetCounts counts;
    counts.net.resize(40);
    ring(truth, counts.net);
    double mean = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        counts.net[i] *= 1e6 * truth[i];
        mean += truth[i] / 39;
    }
    counts.variance = counts.net;
    const auto found = estimate::crystal_efficiencies(counts, ring);
    CHECK(found.dead == std::vector<std::uint32_t>{17});
    CHECK(found.efficiency[17] == 0);
    CHECK(std::isinf(found.error[17]));
    for (std::size_t i = 0; i < 40; ++i) {
        CAPTURE(i);
        CHECK(found.efficiency[i] == Approx(truth[i] / mean).epsilon(0.001));
    }
    CHECK(found.error[3] == Approx(1 / std::sqrt(counts.net[3])));
}

TEST_CASE("efficiencies: a crystal that the source does not reach keeps 1, noise below 0 is dead") {
    const auto sums = [](std::span<const double> weights, std::span<double> out) {
        std::vector<double> more(weights.begin(), weights.begin() + 40);
        ring_sums(more, out.first(40));
        out[40] = 0;
    };
    estimate::NetCounts counts;
    counts.net.assign(41, 1000);
    counts.net[5] = -3;
    counts.net[40] = 12;
    counts.variance = counts.net;
    counts.variance[5] = 40;
    const auto found = estimate::crystal_efficiencies(counts, sums);
    CHECK(found.unseen == std::vector<std::uint32_t>{40});
    CHECK(found.efficiency[40] == 1);
    CHECK(found.dead == std::vector<std::uint32_t>{5});
    CHECK(found.efficiency[5] == 0);
}

TEST_CASE("efficiencies: insufficient data are refused") {
    estimate::NetCounts counts{std::vector<double>(40, 80), std::vector<double>(40, 80)};
    CHECK_THAT(refusal(counts, ring_sums),
               petacq::test::contains("a median of 80") && petacq::test::contains("at least 100"));
    // Only pairs of opposite crystals: high at phi and low at phi + pi fits as well.
    counts.net.assign(40, 1000);
    counts.net[3] = 2000;
    const auto opposite = [](std::span<const double> weights, std::span<double> sums) {
        for (std::size_t i = 0; i < 40; ++i)
            sums[i] = weights[(i + 20) % 40];
    };
    CHECK_THAT(refusal(counts, opposite), petacq::test::contains("joins all crystals"));
    counts.variance.pop_back();
    CHECK_THROWS_AS(estimate::crystal_efficiencies(counts, ring_sums), std::invalid_argument);
}
