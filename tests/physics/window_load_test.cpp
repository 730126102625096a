// What follows from how full the windows are.
#include <cmath>

#include "gpu/randoms/window_load.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using gpu::MultiplesPolicy;
using gpu::WindowMode;

namespace {

gpu::CoincidenceRules rules_with(WindowMode mode, MultiplesPolicy policy) {
    gpu::CoincidenceRules rules;
    rules.window = 400;
    rules.mode = mode;
    rules.policy = policy;
    return rules;
}

}  // namespace

TEST_CASE("window load: from groups, or from unpaired singles in mode every") {
    gpu::SingleCounts counts;
    counts.groups = 200;
    const double part = 200 * 400.5 / 1e6;
    const auto single = rules_with(WindowMode::single, MultiplesPolicy::remove_multiples);
    CHECK(gpu::window_load(single, counts, 1'000'000) == Approx(part / (1 - part)));
    const auto every = rules_with(WindowMode::every, MultiplesPolicy::remove_multiples);
    counts.unpaired = 180;
    const double load = gpu::window_load(every, counts, 1'000'000);
    CHECK(load * std::exp(-load) == Approx(180 * 400.5 / 1e6));
}

TEST_CASE("window load: nothing, and intervals too short to tell") {
    for (const WindowMode mode : {WindowMode::single, WindowMode::every}) {
        const auto rules = rules_with(mode, MultiplesPolicy::remove_multiples);
        CHECK(gpu::window_load(rules, {}, 0) == 0);
        CHECK(gpu::window_load(rules, {}, 1000) == 0);
        gpu::SingleCounts counts;
        counts.groups = 2;
        counts.unpaired = 2;
        // One prompt in the last microsecond of a run must not count as thousands.
        for (const std::uint64_t ticks : {1, 500, 40'000})
            CHECK(gpu::window_load(rules, counts, ticks) == 0);
        CHECK(gpu::window_load(rules, counts, 40'050) < 0.025);
        CHECK(gpu::window_load(rules, counts, 40'050) > 0);
    }
}
