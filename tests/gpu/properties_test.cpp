// Properties: a pipeline gives the records and counts of the reference for every family of input, mode and
// policy, with and without delayeds, for any slices, interleaving, reordering and number of threads.
//
//   PETACQ_PROPERTY_SEEDS=N   N times as many seeds (default 1)
//   PETACQ_PROPERTY_SEED=S    only seed S, as printed by a failure
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::WindowMode;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The seeds of a test that runs `usual` of them by default.
std::vector<std::uint64_t> seeds(std::uint64_t usual) {
    if (const std::uint64_t only = number_from_environment("PETACQ_PROPERTY_SEED", 0); only > 0)
        return {only};
    std::vector<std::uint64_t> all;
    const std::uint64_t count = usual * number_from_environment("PETACQ_PROPERTY_SEEDS", 1);
    for (std::uint64_t s = 1; s <= count; ++s)
        all.push_back(s);
    return all;
}

void set_rules(Case& c, int mode, int policy, bool with_delay) {
    c.options.rules.mode = static_cast<WindowMode>(mode);
    c.options.rules.policy = static_cast<MultiplesPolicy>(policy);
    if (!with_delay) c.options.rules.delay.reset();
}

PlanOptions random_plan_options(const Case& c, Rng& rng) {
    PlanOptions options;
    const std::vector<std::size_t> lengths{0, 0, 1, 7, 1000, c.frames.size() + 1};
    options.slice_frames = rng.pick(lengths);
    const std::vector<std::size_t> disorders{0, 0, 3, 50, c.frames.size()};
    options.disorder = rng.pick(disorders);
    options.max_span = rng.chance(0.3) ? 1 : rng.between<std::size_t>(1, 200);
    options.slack = rng.chance(0.6);
    if (rng.chance(0.4)) options.segments = rng.between<std::size_t>(2, 5);
    if (rng.chance(0.3)) options.late = 0.5;
    return options;
}

// Tests one case. One assertion per case keeps hundreds of thousands affordable.
bool passes(const Backend& backend, const Case& c, const PlanOptions& options, std::uint64_t plan_seed) {
    std::string difference;
    try {
        difference = try_case(backend, c, options, plan_seed);
    } catch (const std::exception& e) {
        FAIL("back-end " << backend.name << ", " << describe(c, options) << "threw: " << e.what());
    }
    if (difference.empty()) return true;
    FAIL_CHECK(difference << "\n" << report(backend, c, options, plan_seed));
    return false;
}

// Only order.
bool passes_without_search(const Backend& backend, const Case& base, std::uint64_t plan_seed) {
    Case c = base;
    c.options.rules.search = false;
    Rng rng(plan_seed);
    c.options.threads = rng.between(1U, 8U);
    return passes(backend, c, random_plan_options(c, rng), plan_seed);
}

// Windows so short that there are not many times more triples than pairs.
void add_few_gammas(Case& c, Rng& rng) {
    add_gammas(c, rng);
    auto& gammas = *c.options.rules.gammas;
    gammas.before = std::min<std::uint64_t>(gammas.before, 2);
    gammas.after = std::min<std::uint64_t>(gammas.after, 2);
}

// What gammas must not change in the expected results.
std::string pairs_differ(const Case& with, const Case& without, const PlanOptions& options,
                         std::uint64_t plan_seed) {
    Rng rng(plan_seed);
    Rng again(plan_seed);
    const Expected a = reference_run(with, make_plan(with, options, rng));
    const Expected b = reference_run(without, make_plan(without, options, again));
    if (a.segments.size() != b.segments.size()) return "the plans differ";
    for (std::size_t i = 0; i < a.segments.size(); ++i) {
        const Decided& x = a.segments[i];
        const Decided& y = b.segments[i];
        if (!std::equal(x.coincidences.begin(), x.coincidences.end(), y.coincidences.begin(),
                        y.coincidences.end(), [](const auto& p, const auto& q) {
                            return !coincidence_before(p, q) && !coincidence_before(q, p);
                        }))
            return "pairs depend on gammas";
        if (!(x.counts == y.counts)) return "counts of singles depend on gammas";
        petacq::gpu::IntervalSums sums = petacq::gpu::IntervalSums::none(with.options.geometry);
        petacq::gpu::IntervalSums other = sums;
        add_reference_sums(sums, x, with.options.geometry, 0, std::nullopt);
        add_reference_sums(other, y, with.options.geometry, 0, std::nullopt);
        if (!(sums == other)) return "sums depend on gammas";
    }
    return {};
}

void check_family(Family family) {
    for (const Backend& backend : backends()) {
        for (const std::uint64_t seed : seeds(20)) {
            Case base = make_case(family, seed);
            std::uint64_t plan_seed = seed * 100;
            if (!passes_without_search(backend, base, plan_seed)) return;
            // single_opener shares its windows with single, and its pairs with every: fewer seeds will do.
            for (int mode = 0; mode < (seed % 4 == 0 ? 3 : 2); ++mode) {
                for (int policy = 0; policy < 6; ++policy) {
                    // Each seed with delayeds for half of the rules, and the next seed for the others.
                    const bool with_delay = (seed + static_cast<std::uint64_t>(mode + policy)) % 2 == 0;
                    Case c = base;
                    set_rules(c, mode, policy, with_delay);
                    Rng rng(++plan_seed);
                    c.options.threads = rng.between(1U, 8U);
                    if (!passes(backend, c, random_plan_options(c, rng), plan_seed)) return;
                }
            }
        }
        SUCCEED();
    }
}

}  // namespace

TEST_CASE("properties: tiny") {
    check_family(Family::tiny);
}
TEST_CASE("properties: poisson_0_01") {
    check_family(Family::poisson_0_01);
}
TEST_CASE("properties: poisson_0_1") {
    check_family(Family::poisson_0_1);
}
TEST_CASE("properties: poisson_1") {
    check_family(Family::poisson_1);
}
TEST_CASE("properties: poisson_10") {
    check_family(Family::poisson_10);
}
TEST_CASE("properties: equal_times") {
    check_family(Family::equal_times);
}
TEST_CASE("properties: fixed_gaps") {
    check_family(Family::fixed_gaps);
}
TEST_CASE("properties: chains") {
    check_family(Family::chains);
}
TEST_CASE("properties: bursts") {
    check_family(Family::bursts);
}
TEST_CASE("properties: ties") {
    check_family(Family::ties);
}
TEST_CASE("properties: near_zero") {
    check_family(Family::near_zero);
}
TEST_CASE("properties: near_max") {
    check_family(Family::near_max);
}
TEST_CASE("properties: huge_gaps") {
    check_family(Family::huge_gaps);
}
TEST_CASE("properties: winner_ties") {
    check_family(Family::winner_ties);
}
TEST_CASE("properties: refused_pairs") {
    check_family(Family::refused_pairs);
}
TEST_CASE("properties: delay_edges") {
    check_family(Family::delay_edges);
}
TEST_CASE("properties: mixed") {
    check_family(Family::mixed);
}

TEST_CASE("properties: a pipeline after reset behaves like a new one") {
    for (const Backend& backend : backends()) {
        for (const std::uint64_t seed : seeds(30)) {
            const Family family = all_families()[seed % all_families().size()];
            Case c = make_case(family, seed);
            set_rules(c, static_cast<int>(seed % 3), static_cast<int>(seed / 3 % 6), seed % 3 == 0);
            c.options.threads = 1 + seed % 4;
            c.options.max_slice_frames = 5000;
            Rng rng(seed);
            const auto pipeline = backend.make(c.options, c.setup.calibration);
            for (int run = 0; run < 4; ++run) {
                const PlanOptions options = random_plan_options(c, rng);
                Plan plan = make_plan(c, options, rng);
                if (run == 2) {  // abandoned in mid-stream, with undecided singles
                    petacq::gpu::SliceResult result;
                    const PlannedSlice& first = plan.slices.front();
                    pipeline->submit({1, first.spans, first.watermark, {}});
                    REQUIRE(pipeline->collect(result, true));
                } else {
                    const Expected expected = reference_run(c, plan);
                    const std::string difference = run_and_compare(*pipeline, c, plan, expected, rng);
                    INFO("run " << run << ", " << describe(c, options) << difference);
                    REQUIRE(difference.empty());
                }
                pipeline->reset();
            }
        }
    }
}

// Pairs, their counts and their sums are also those of a run in which the gamma window is cut off.
TEST_CASE("properties: gammas") {
    for (const Backend& backend : backends()) {
        for (const Family family : all_families()) {
            for (const std::uint64_t seed : seeds(20)) {
                Rng rng(seed * 100 + static_cast<std::uint64_t>(family));
                Case c = make_case(family, seed + 9000, rng.between<std::size_t>(10, 250));
                // Groups that cross the end of a slice hold pairs back under a policy that takes several.
                const int policy = rng.chance(0.3) ? 1 : static_cast<int>(rng.index(6));
                set_rules(c, static_cast<int>(rng.index(3)), policy, rng.chance(0.5));
                c.options.rules.search = !rng.chance(0.05);
                c.options.emit_singles = rng.chance(0.7);
                c.options.threads = rng.between(1U, 8U);
                add_gammas(c, rng);
                const PlanOptions options = random_plan_options(c, rng);
                if (!passes(backend, c, options, seed)) return;
                Case without = c;
                without.options.rules.gammas.reset();
                if (!passes(backend, without, options, seed)) return;
                if (const std::string difference = pairs_differ(c, without, options, seed);
                    !difference.empty()) {
                    FAIL(describe(c, options) << difference);
                }
            }
        }
        SUCCEED();
    }
}

// Slices large enough for several threads each.
TEST_CASE("properties: large slices") {
    for (const Backend& backend : backends()) {
        for (const std::uint64_t seed : seeds(30)) {
            const Family family = all_families()[seed % all_families().size()];
            Case c = make_case(family, seed + 5000, 30'000);
            set_rules(c, static_cast<int>(seed % 3), static_cast<int>(seed / 3 % 6), seed % 3 != 0);
            Rng rng(seed);
            if (seed % 5 == 0) add_few_gammas(c, rng);
            c.options.threads = rng.between(1U, 8U);
            PlanOptions options;
            const std::vector<std::size_t> lengths{0, 5000, 12'345, 30'001};
            options.slice_frames = rng.pick(lengths);
            const std::vector<std::size_t> disorders{0, 100, 10'000};
            options.disorder = rng.pick(disorders);
            options.max_span = 1000;
            options.segments = rng.between<std::size_t>(1, 3);
            options.late = rng.chance(0.5) ? 5 : 0;
            if (!passes(backend, c, options, seed)) return;
        }
        SUCCEED();
    }
}
