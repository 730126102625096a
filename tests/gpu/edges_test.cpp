// Hand-made cases at the limits of the interface: the last tick, empty segments, huge groups.
#include <optional>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::DelayedRule;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::SliceResult;
using petacq::gpu::WindowMode;

// A scanner without time offsets, energy window or geometric conditions; window 3.
Case plain_case() {
    Rng rng(8);
    Case c;
    c.setup = random_setup(rng);
    c.setup.calibration.time_offset.clear();
    c.setup.calibration.bins = 1;
    c.setup.calibration.energy_factor.assign(c.setup.places.size(), 0.5F);
    c.options.geometry = c.setup.geometry;
    c.options.frame_version = c.setup.frame_version;
    c.options.head_marker = c.setup.head_marker;
    c.options.tail_marker = c.setup.tail_marker;
    c.options.energy.filter = false;
    c.options.rules.window = 3;
    c.options.rules.policy = MultiplesPolicy::take_all_goods;
    c.options.emit_singles = true;
    c.sources.resize(1);
    return c;
}

struct ByHand {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> singles;  // (time, crystal)
    std::uint64_t watermark = 0;
    std::optional<std::uint64_t> close_at = {};
};

Plan plan_of(const Case& c, const std::vector<ByHand>& slices) {
    Rng rng(1);
    Plan plan;
    for (const ByHand& by_hand : slices) {
        PlannedSlice& slice = plan.slices.emplace_back();
        for (const auto& [time, crystal] : by_hand.singles) {
            slice.frames.push_back(frame_for(c.setup, {time, crystal, 1000}, rng).value());
        }
        slice.spans.push_back({reinterpret_cast<const std::byte*>(slice.frames.data()),
                               static_cast<std::uint32_t>(slice.frames.size()), 0, UINT64_MAX});
        slice.watermark = by_hand.watermark;
        slice.close_at = by_hand.close_at;
    }
    plan.slices.emplace_back();
    plan.slices.back().watermark = UINT64_MAX;
    plan.slices.back().close_at = UINT64_MAX;
    return plan;
}

// All modes, without delayeds and with both rules for them, 1 and 3 threads. Returns the prompts of mode
// "single".
void check(const std::vector<ByHand>& slices, std::size_t prompts) {
    for (const Backend& backend : backends()) {
        for (int variant = 0; variant < 18; ++variant) {
            Case c = plain_case();
            c.options.rules.mode = static_cast<WindowMode>(variant % 3);
            if (variant / 3 % 3 != 0) c.options.rules.delay = 10;
            if (variant / 3 % 3 == 2) c.options.rules.delayeds = DelayedRule::delayed_window;
            c.options.threads = variant / 9 == 0 ? 1 : 3;
            Plan plan = plan_of(c, slices);
            const Expected expected = reference_run(c, plan);
            std::size_t found = 0;
            for (const Decided& segment : expected.segments)
                found += segment.counts.prompts;
            if (c.options.rules.mode == WindowMode::single) CHECK(found == prompts);
            const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
            Rng rng(1);
            const std::string difference = run_and_compare(*pipeline, c, plan, expected, rng);
            INFO(backend.name << ", " << describe(c, {}) << difference);
            CHECK(difference.empty());
        }
    }
}

}  // namespace

TEST_CASE("edges: singles at the last tick may arrive after the watermark has reached it") {
    check({{{{UINT64_MAX, 9}}, UINT64_MAX}, {{{UINT64_MAX, 4}}, UINT64_MAX}}, 1);
    check({{{{UINT64_MAX - 2, 9}}, UINT64_MAX}, {{{UINT64_MAX, 4}}, UINT64_MAX}}, 1);
    check({{{{UINT64_MAX - 4, 9}}, UINT64_MAX}, {{{UINT64_MAX, 4}}, UINT64_MAX}}, 0);
}

TEST_CASE("edges: time 0") {
    check({{{{0, 3}, {0, 2}}, 0}, {{{3, 1}}, 4}}, 3);
    check({{{{0, 3}}, 0}, {{{0, 2}}, 0}, {{}, 4}}, 1);
}

TEST_CASE("edges: a frame at the watermark is not late, one below is") {
    check({{{{10, 1}}, 12}, {{{12, 2}}, 12}}, 1);
    check({{{{10, 1}}, 12}, {{{11, 2}}, 12}}, 0);
}

TEST_CASE("edges: no input, and empty segments") {
    check({}, 0);
    check({{{}, 0, 0}, {{}, 0, 0}, {{}, 50, 20}, {{}, 50}, {{}, 60, 60}}, 0);
}

TEST_CASE("edges: a close splits the singles of one window") {
    check({{{{10, 1}, {11, 2}}, 20, 11}}, 0);
    check({{{{10, 1}, {11, 2}}, 20, 12}}, 1);
    check({{{{10, 1}, {11, 2}, {12, 3}}, 20, 11}}, 1);
    check({{{{10, 1}, {11, 2}, {12, 3}, {13, 4}}, 11, 11}, {{{11, 7}}, 12, 12}, {{{12, 5}}, 100, 13}}, 2);
}

TEST_CASE("edges: singles after a close are decided in the next segment, not before") {
    // Everything is below the watermark, but the result of the closing slice holds only the closed segment.
    check({{{{10, 1}, {11, 2}, {30, 3}, {31, 4}}, 1000, 20}, {{}, 1000}}, 2);
    check({{{{10, 1}, {11, 2}, {30, 3}, {31, 4}}, 1000, 20}, {{}, 1000, 1000}, {{{1000, 1}}, 1005}}, 2);
}

TEST_CASE("edges: a long time without progress of the watermark, then everything at once") {
    check({{{{100, 1}}, 0}, {{{50, 2}}, 0}, {{{102, 3}}, 0}, {{{53, 4}}, 0}, {{}, 500}}, 2);
}

// A test pulse fires every channel at once. Groups far above max_multiplicity must not cost their square.
TEST_CASE("edges: a hundred thousand singles of one time") {
    constexpr std::size_t count = 100'000;
    constexpr std::uint64_t delay = 1000;
    for (const Backend& backend : backends()) {
        for (const WindowMode mode : {WindowMode::single, WindowMode::every, WindowMode::single_opener}) {
            for (const DelayedRule rule : {DelayedRule::shifted_group, DelayedRule::delayed_window}) {
                Case c = plain_case();
                c.options.rules.mode = mode;
                c.options.rules.delay = delay;
                c.options.rules.delayeds = rule;
                c.options.threads = 2;
                ByHand pulse;
                for (std::size_t i = 0; i < count; ++i) {
                    const auto crystal = static_cast<std::uint32_t>(i % c.setup.geometry.crystal_count());
                    pulse.singles.emplace_back(5, crystal);
                    pulse.singles.emplace_back(5 + delay, crystal);
                }
                pulse.watermark = UINT64_MAX;
                pulse.close_at = UINT64_MAX;
                const Plan plan = plan_of(c, {pulse});
                const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
                const PlannedSlice& slice = plan.slices.front();
                pipeline->submit({1, slice.spans, slice.watermark, slice.close_at});
                SliceResult result;
                REQUIRE(pipeline->collect(result, true));
                CHECK(result.counts.decided == 2 * count);
                // In mode "every", few enough singles follow the last 64 of each pulse.
                const bool single = mode != WindowMode::every;
                const std::size_t oversize = single ? count : count - c.options.rules.max_multiplicity;
                CHECK(result.counts.in_oversize_multiples == 2 * oversize);
                CHECK(result.counts.delayed_oversize >= (single ? 1 : oversize));
                if (single || rule == DelayedRule::delayed_window) CHECK(result.counts.delayeds == 0);
            }
        }
    }
}
