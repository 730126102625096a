// The true pairs that are lost to other singles of their windows, by the estimate and by the truth of the
// simulator, under every policy and window mode.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "gpu/randoms/randoms.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tests/physics/phantoms.hpp"
#include "tests/physics/truth.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using gpu::MultiplesPolicy;
using gpu::WindowMode;

namespace {

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/" + name + ".scanner.json");
}

gpu::CoincidenceRules rules_of(WindowMode mode, MultiplesPolicy policy) {
    gpu::CoincidenceRules rules;
    rules.window = 360;
    rules.min_module_difference = 2;
    rules.mode = mode;
    rules.policy = policy;
    return rules;
}

/// A cylinder of water off the axis; `pairs`: annihilations.
sim::Options cylinder_with(double mbq, double pairs) {
    const sim::Cylinder shape{{8, -5, 2}, 11, 40};
    sim::Options options;
    options.seed = 8;
    options.threads = 2;
    options.duration_s = pairs / mbq * 1e-6;
    options.activity = {active_cylinder(shape, mbq)};
    options.object = sim::ScatteringObject{shape};
    options.physics.efficiency = 0.7;
    options.crystals.model = sim::CrystalModel::depth;
    return options;
}

/// The good pairs of one annihilation each that share a window if nothing else is there.
double all_true_pairs(const TrueSingles& truth, const gpu::CoincidenceRules& rules) {
    const auto rule = gpu::PairRule::of(truth.scanner.geometry, rules);
    const auto& singles = truth.singles;
    double pairs = 0;
    for (std::size_t i = 0; i < singles.size(); ++i) {
        for (std::size_t j = i + 1; j < singles.size() && singles[j].time - singles[i].time <= rules.window;
             ++j) {
            if (truth.annihilations[i] != 0 && truth.annihilations[i] == truth.annihilations[j] &&
                rule.good(singles[i].crystal, singles[j].crystal))
                ++pairs;
        }
    }
    return pairs;
}

/// Each policy and mode within `margin` and three standard deviations.
void compare_all(const TrueSingles& truth, double margin) {
    for (const WindowMode mode : {WindowMode::single, WindowMode::every}) {
        for (const MultiplesPolicy policy :
             {MultiplesPolicy::remove_multiples, MultiplesPolicy::take_all_goods,
              MultiplesPolicy::take_winner_of_goods, MultiplesPolicy::take_if_only_one_good,
              MultiplesPolicy::take_winner_if_is_good, MultiplesPolicy::take_winner_if_all_are_goods}) {
            const gpu::CoincidenceRules rules = rules_of(mode, policy);
            const Found found = find_pairs(truth, rules);
            const auto random = is_random(truth, found.pairs);
            const double all = all_true_pairs(truth, rules);
            const auto taken = static_cast<double>(std::count(random.begin(), random.end(), false));
            gpu::RandomsEstimator estimator(truth.scanner.geometry, rules);
            gpu::ExpectedRandoms randoms;
            REQUIRE(found.seconds.size() == 1);
            estimator.estimate(found.seconds[0].sums, found.seconds[0].range.ticks(), randoms);
            const double noise = std::sqrt(all - taken) / taken;
            CAPTURE(truth.scanner.name, truth.per_second(), static_cast<int>(mode), static_cast<int>(policy),
                    all, taken, estimator.pile_up(), all / taken);
            CHECK(std::abs(estimator.pile_up() * taken / all - 1) < margin + 3 * noise);
        }
    }
}

}  // namespace

TEST_CASE("pile-up: true pairs that are lost, under every policy and window mode", "[physics]") {
    compare_all(simulate_singles(example_scanner("small"), cylinder_with(40, 400'000)), 0.004);
}

TEST_CASE("pile-up: two scanners, two rates, with Lu-176 and with low energies", "[.long]") {
    for (const char* const name : {"mouse", "small"}) {
        for (const double mbq : {10.0, 60.0}) {
            sim::Options options = cylinder_with(mbq, 2'500'000);
            compare_all(simulate_singles(example_scanner(name), options), 0.004);
            options.physics.intrinsic_hz = 100;
            compare_all(simulate_singles(example_scanner(name), options), 0.005);
            compare_all(simulate_singles(example_scanner(name), options, 200), 0.009);
        }
    }
}

TEST_CASE("pile-up: of windows with a known load") {
    const config::Geometry geometry = example_scanner("small").geometry;
    const auto factor = [&](WindowMode mode, MultiplesPolicy policy, std::uint64_t ticks) {
        gpu::IntervalSums sums = gpu::IntervalSums::none(geometry);
        sums.counts.groups = 200;
        sums.counts.unpaired = 180;
        gpu::RandomsEstimator estimator(geometry, rules_of(mode, policy));
        gpu::ExpectedRandoms randoms;
        estimator.estimate(sums, ticks, randoms);
        return estimator.pile_up();
    };
    constexpr std::uint64_t ticks = 1'000'000;
    const double part = 200 * 360.5 / ticks;
    const double load = part / (1 - part);
    CHECK(factor(WindowMode::single, MultiplesPolicy::remove_multiples, ticks) ==
          Approx((1 + load) * std::exp(load)));
    double of_every = 0;
    for (int i = 0; i < 60; ++i)
        of_every = 180 * 360.5 / ticks * std::exp(of_every);
    CHECK(factor(WindowMode::every, MultiplesPolicy::remove_multiples, ticks) == Approx(std::exp(of_every)));
    for (const WindowMode mode : {WindowMode::single, WindowMode::every}) {
        // Without true pairs, no edge of a window separates any.
        CHECK(factor(mode, MultiplesPolicy::take_all_goods, ticks) == Approx(1));
        const double winner = factor(mode, MultiplesPolicy::take_winner_of_goods, ticks);
        CHECK(winner > 1.01);
        CHECK(winner < factor(mode, MultiplesPolicy::take_if_only_one_good, ticks));
        // A few singles in a short interval tell no rate.
        CHECK(factor(mode, MultiplesPolicy::remove_multiples, 30'000) == Approx(1));
    }
}
