// The weights that follow from the counts of an interval.
#include <cmath>

#include "gpu/randoms_weights.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using gpu::MultiplesPolicy;
using gpu::WindowMode;

namespace {

gpu::CoincidenceRules rules_with(WindowMode mode, MultiplesPolicy policy) {
    gpu::CoincidenceRules rules;
    rules.window = 400;
    rules.delay = 20'000;
    rules.mode = mode;
    rules.policy = policy;
    return rules;
}

/// The weights of 10^6 ticks with 200 groups, a tenth of them blocked: G w = 0.0801.
gpu::RandomsWeights weights(WindowMode mode, MultiplesPolicy policy) {
    gpu::SingleCounts counts;
    counts.groups = 200;
    counts.groups_blocked = mode == WindowMode::single ? 20 : 0;
    return gpu::randoms_weights(rules_with(mode, policy), counts, 1'000'000);
}

}  // namespace

TEST_CASE("the weights follow from the groups", "[seconds]") {
    const double part = 200 * 400.5 / 1e6;
    const double load = part / (1 - part);
    const double blocked = 1 / 0.9;
    const auto remove = weights(WindowMode::single, MultiplesPolicy::remove_multiples);
    CHECK(remove.load == Approx(load));
    CHECK(remove.pile_up == Approx((1 + load) * std::exp(load)));
    CHECK(remove.delayeds == Approx(blocked * std::exp(load)));
    const auto goods = weights(WindowMode::single, MultiplesPolicy::take_all_goods);
    CHECK(goods.pile_up == 1);
    CHECK(goods.delayeds == Approx(blocked / (1 + load / 2)));
    const auto winner = weights(WindowMode::single, MultiplesPolicy::take_winner_of_goods);
    CHECK(std::isnan(winner.pile_up));
    CHECK(winner.delayeds == Approx(blocked * (1 + load / 4)));
    const auto every = weights(WindowMode::every, MultiplesPolicy::remove_multiples);
    CHECK(every.load == Approx(part));
    CHECK(every.pile_up == Approx(std::exp(part)));
    CHECK(every.delayeds == Approx(std::exp(part)));
    CHECK(weights(WindowMode::every, MultiplesPolicy::take_all_goods).delayeds == 1);
}

TEST_CASE("the weights of an interval without groups are those of an empty scanner", "[seconds]") {
    for (const std::uint64_t ticks : {std::uint64_t{0}, std::uint64_t{1000}}) {
        const auto none = gpu::randoms_weights(
            rules_with(WindowMode::single, MultiplesPolicy::remove_multiples), {}, ticks);
        CHECK(none.load == 0);
        CHECK(none.pile_up == 1);
        CHECK(none.delayeds == 1);
    }
}

TEST_CASE("an interval shorter than a window has finite weights", "[seconds]") {
    gpu::SingleCounts counts;
    counts.groups = 1;
    const auto w =
        gpu::randoms_weights(rules_with(WindowMode::single, MultiplesPolicy::remove_multiples), counts, 1);
    CHECK(std::isfinite(w.pile_up));
    CHECK(std::isfinite(w.delayeds));
    counts.groups_blocked = 1;
    CHECK(std::isnan(
        gpu::randoms_weights(rules_with(WindowMode::single, MultiplesPolicy::take_all_goods), counts, 1)
            .delayeds));
}

TEST_CASE("delayed windows are a tick wider than prompt windows", "[seconds]") {
    auto rules = rules_with(WindowMode::single, MultiplesPolicy::remove_multiples);
    rules.delayeds = gpu::DelayedRule::delayed_window;
    rules.window = 5;
    CHECK(gpu::randoms_weights(rules, {}, 1'000'000).delayeds == Approx(11.0 / 12));
}

TEST_CASE("in window mode every, the two windows of a true pair are one annihilation", "[seconds]") {
    // 600 annihilations with one single and 60 with two, all found.
    gpu::SingleCounts counts;
    counts.groups = 720;
    counts.prompts = 60;
    const auto w = gpu::randoms_weights(rules_with(WindowMode::every, MultiplesPolicy::take_all_goods),
                                        counts, 1'000'000);
    CHECK(w.load == Approx(660 * 400.5 / 1e6));
}
