// Expected randoms: both back-ends against the plain double sum, and against the delayeds of the pipeline for
// random singles.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "gpu/arithmetic.hpp"
#include "gpu/randoms.hpp"
#include "tests/gpu/backends.hpp"
#include "tests/gpu/setups.hpp"
#include "tests/support/catch.hpp"
#ifdef PETACQ_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/randoms.hpp"
#endif

namespace {

using namespace petacq::test;
using petacq::config::Geometry;
using petacq::gpu::CoincidenceRules;
using petacq::gpu::DelayedRule;
using petacq::gpu::ExpectedRandoms;
using petacq::gpu::PairRule;
using petacq::gpu::RandomsEstimator;

struct EstimatorKind {
    std::string name;
    std::function<std::unique_ptr<RandomsEstimator>(const Geometry&, const CoincidenceRules&, double)> make;
};

std::vector<EstimatorKind> estimator_kinds() {
    std::vector<EstimatorKind> all{{"host", petacq::gpu::make_host_randoms}};
#ifdef PETACQ_CUDA
    if (const auto reason = petacq::gpu::cuda_unusable_reason()) {
        WARN("on the CPU only: " << *reason);
    } else {
        all.push_back({"cuda", petacq::gpu::make_cuda_randoms});
    }
#endif
    return all;
}

constexpr double tick_s = 1e-11;

// The definition, pair by pair.
ExpectedRandoms plain(const Geometry& g, const CoincidenceRules& rules, const std::vector<double>& rates) {
    const PairRule rule = PairRule::of(g, rules);
    const long double both_ways = 2 * (static_cast<long double>(rules.window) + 1) * tick_s;
    const auto module_of = [&](std::size_t crystal) {
        return crystal % g.crystals_in_ring() / g.crystals_per_module_y();
    };
    const std::size_t modules = g.modules_in_ring();
    std::vector<long double> pairs(modules * modules);
    long double total = 0;
    ExpectedRandoms out;
    out.modules = static_cast<std::uint32_t>(modules);
    for (std::uint32_t i = 0; i < rates.size(); ++i) {
        long double sum = 0;
        for (std::uint32_t j = 0; j < rates.size(); ++j) {
            if (!rule.good(i, j)) continue;
            sum += rates[j];
            const long double one = both_ways * rates[i] * rates[j];
            if (i < j) {
                total += one;
                pairs[module_of(i) * modules + module_of(j)] += one;
                if (module_of(i) != module_of(j)) pairs[module_of(j) * modules + module_of(i)] += one;
            }
        }
        out.per_crystal.push_back(static_cast<double>(both_ways * rates[i] * sum));
    }
    for (const long double p : pairs)
        out.module_pairs.push_back(static_cast<double>(p));
    out.total = static_cast<double>(total);
    return out;
}

std::string difference(const ExpectedRandoms& got, const ExpectedRandoms& want) {
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); };
    const auto compare = [&](const char* what, const std::vector<double>& a, const std::vector<double>& b) {
        if (a.size() != b.size()) return what + std::string(": another length");
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (!near(a[i], b[i])) {
                return what + ("[" + std::to_string(i)) + "]: got " + std::to_string(a[i]) + ", expected " +
                       std::to_string(b[i]);
            }
        }
        return std::string();
    };
    if (got.modules != want.modules) return "modules";
    if (!near(got.total, want.total)) {
        return "total: got " + std::to_string(got.total) + ", expected " + std::to_string(want.total);
    }
    std::string found = compare("per_crystal", got.per_crystal, want.per_crystal);
    if (found.empty()) found = compare("module_pairs", got.module_pairs, want.module_pairs);
    return found;
}

Geometry geometry_of(std::uint32_t channels, std::uint32_t modules_y, std::uint32_t modules_z,
                     std::uint32_t blocks_y, std::uint32_t blocks_z, std::uint32_t crystals_y,
                     std::uint32_t crystals_z) {
    Geometry g;
    g.channels = channels;
    g.modules = {1, modules_y, modules_z};
    g.blocks = {1, blocks_y, blocks_z};
    g.crystals = {1, crystals_y, crystals_z};
    g.bdm_count = channels * modules_y * modules_z;
    g.du_count = blocks_y * blocks_z;
    g.position_size = 16;
    return g;
}

Geometry odd_geometry(Rng& rng) {
    Geometry g;
    do {
        g = geometry_of(rng.between(1U, 6U), rng.between(1U, 3U), rng.between(1U, 4U), rng.between(1U, 3U),
                        rng.between(1U, 3U), rng.between(1U, 7U), rng.between(1U, 7U));
    } while (g.crystal_count() > 600);
    return g;
}

// None, even, uneven, nearly all zero, or far apart in size.
std::vector<double> rates_for(std::size_t crystals, std::size_t kind, Rng& rng) {
    std::vector<double> rates(crystals);
    for (double& rate : rates) {
        if (kind == 1) rate = 100;
        if (kind == 2) rate = rng.unit() * 1e4;
        if (kind == 3) rate = rng.chance(0.02) ? rng.unit() * 1e6 : 0;
        if (kind == 4) rate = std::exp(rng.unit() * 60 - 30);
    }
    return rates;
}

}  // namespace

TEST_CASE("randoms: equal to the plain sum for any geometry and rates") {
    for (const EstimatorKind& kind : estimator_kinds()) {
        Rng rng(17);
        for (int round = 0; round < 40; ++round) {
            // The last ones have modules of several blocks of targets, and more modules than groups.
            const Geometry g = round < 37    ? odd_geometry(rng)
                               : round == 37 ? geometry_of(10, 1, 2, 2, 2, 5, 7)
                               : round == 38 ? geometry_of(19, 1, 1, 1, 1, 3, 3)
                                             : geometry_of(1, 2, 1, 2, 2, 13, 16);
            CoincidenceRules rules;
            rules.window = rng.pick(std::vector<std::uint32_t>{0, 1, 400, 4'000'000'000});
            rules.min_module_difference = rng.chance(0.4) ? 0 : rng.between(0U, g.modules_in_ring() / 2 + 1);
            if (rng.chance(0.6)) rules.max_ring_difference = rng.between(0U, g.rings());
            const auto estimator = kind.make(g, rules, tick_s);
            ExpectedRandoms got;
            for (std::size_t of_rates = round < 37 ? 0 : 2; of_rates < 5; ++of_rates) {
                const std::vector<double> rates = rates_for(g.crystal_count(), of_rates, rng);
                INFO(kind.name << ", round " << round << ", rates " << of_rates << ", " << g.crystal_count()
                               << " crystals in " << g.modules_in_ring() << " modules and " << g.rings()
                               << " rings, window " << rules.window << ", min_module_difference "
                               << rules.min_module_difference << ", max_ring_difference "
                               << rules.max_ring_difference);
                estimator->estimate(rates, got);
                REQUIRE(difference(got, plain(g, rules, rates)) == "");
                // A repetition gives the same bits.
                ExpectedRandoms again;
                estimator->estimate(rates, again);
                REQUIRE(again.per_crystal == got.per_crystal);
                REQUIRE(again.module_pairs == got.module_pairs);
                REQUIRE(again.total == got.total);
            }
        }
    }
}

TEST_CASE("randoms: values calculated by hand") {
    // Four modules of two crystals, one ring. Window of 9 ticks: 10 ticks, 1e-10 s.
    const Geometry g = geometry_of(4, 1, 1, 1, 1, 2, 1);
    CoincidenceRules rules;
    rules.window = 9;
    rules.min_module_difference = 2;
    const std::vector<double> rates{1000, 2000, 0, 5000, 3000, 4000, 0, 0};
    CHECK(petacq::gpu::randoms_window_s(rules, tick_s) == Approx(1e-10));
    for (const EstimatorKind& kind : estimator_kinds()) {
        INFO(kind.name);
        ExpectedRandoms r;
        kind.make(g, rules, tick_s)->estimate(rates, r);
        REQUIRE(r.modules == 4);
        // Module 0 pairs only with module 2, module 1 only with the empty module 3.
        CHECK(r.per_crystal[0] == Approx(2e-10 * 1000 * 7000));
        CHECK(r.per_crystal[1] == Approx(2e-10 * 2000 * 7000));
        CHECK(r.per_crystal[3] == 0);
        CHECK(r.per_crystal[5] == Approx(2e-10 * 4000 * 3000));
        CHECK(r.module_pairs[2] == Approx(2e-10 * 3000 * 7000));
        CHECK(r.module_pairs[8] == Approx(2e-10 * 3000 * 7000));
        CHECK(r.module_pairs[0] == 0);
        CHECK(r.total == Approx(2e-10 * 3000 * 7000));

        rules.min_module_difference = 0;
        kind.make(g, rules, tick_s)->estimate(rates, r);
        rules.min_module_difference = 2;
        // The two crystals of a module are one pair.
        CHECK(r.module_pairs[0] == Approx(2e-10 * 1000 * 2000));
        CHECK(r.module_pairs[2 * 4 + 2] == Approx(2e-10 * 3000 * 4000));
        CHECK(r.per_crystal[0] == Approx(2e-10 * 1000 * 14000));

        const auto estimator = kind.make(g, rules, tick_s);
        CHECK_THROWS_AS(estimator->estimate(std::vector<double>(7), r), std::invalid_argument);
        estimator->estimate(std::vector<double>(8), r);
        CHECK(r.total == 0);
        CHECK(r.per_crystal == std::vector<double>(8, 0));
    }
}

namespace {

std::vector<std::pair<Backend, DelayedRule>> both_rules() {
    std::vector<std::pair<Backend, DelayedRule>> all;
    for (const Backend& backend : backends()) {
        all.emplace_back(backend, DelayedRule::delayed_window);
        all.emplace_back(backend, DelayedRule::shifted_group);
    }
    return all;
}

}  // namespace

TEST_CASE("randoms: agree with the delayeds of random singles") {
    // A narrow window, so that one tick matters, and so few singles that windows with more than two are rare.
    constexpr std::size_t count = 2'000'000;
    constexpr double mean_gap = 5000;
    Rng rng(4);
    Setup setup = random_setup(rng);
    while (setup.geometry.modules_in_ring() < 6 || setup.geometry.crystal_count() < 500)
        setup = random_setup(rng);
    petacq::gpu::PipelineOptions options;
    options.geometry = setup.geometry;
    options.head_marker = setup.head_marker;
    options.tail_marker = setup.tail_marker;
    options.energy.filter = false;
    options.rules.window = 9;
    options.rules.delay = 2000;
    options.rules.min_module_difference = 2;
    options.max_slice_frames = 100'000;
    options.max_pending_singles = 200'000;

    const auto crystals = static_cast<double>(setup.geometry.crystal_count());
    std::vector<RawFrame> frames(count);
    std::vector<std::uint64_t> times(count);
    constexpr std::uint64_t start = std::uint64_t{1} << 40;
    double time = 0;
    for (std::size_t i = 0; i < count; ++i) {
        time += rng.exponential(mean_gap);
        times[i] = start + static_cast<std::uint64_t>(time);
        const double place = rng.unit() * 0.999999;
        const auto crystal = static_cast<std::uint32_t>(place * std::sqrt(place) * crystals);  // uneven
        frames[i] = frame_for(setup, {times[i], crystal, 1000}, rng).value();
    }
    const double seconds = static_cast<double>(times.back() - start) * tick_s;

    for (const auto& [backend, rule] : both_rules()) {
        options.rules.delayeds = rule;
        const auto pipeline = backend.make(options, setup.calibration);
        petacq::gpu::SliceResult result;
        petacq::gpu::SingleCounts counts;
        for (std::size_t from = 0; from < count; from += options.max_slice_frames) {
            const std::size_t end = std::min<std::size_t>(count, from + options.max_slice_frames);
            const petacq::gpu::FrameSpan span{reinterpret_cast<const std::byte*>(frames.data() + from),
                                              static_cast<std::uint32_t>(end - from), 0, UINT64_MAX};
            petacq::gpu::Slice slice;
            slice.spans = {&span, 1};
            slice.watermark = end == count ? UINT64_MAX : times[end];
            if (end == count) slice.close_at = UINT64_MAX;
            pipeline->submit(slice);
            REQUIRE(pipeline->collect(result, true));
            counts += result.counts;
        }
        petacq::gpu::SinglesHistograms histograms;
        pipeline->histograms(histograms);
        std::vector<double> rates;
        for (const std::uint64_t n : histograms.per_crystal)
            rates.push_back(static_cast<double>(n) / seconds);
        for (const EstimatorKind& kind : estimator_kinds()) {
            ExpectedRandoms expected;
            kind.make(setup.geometry, options.rules, tick_s)->estimate(rates, expected);
            const double pairs = expected.total * seconds;
            const auto delayeds = static_cast<double>(counts.delayeds);
            const auto prompts = static_cast<double>(counts.prompts);
            INFO(backend.name << ", " << name_of(rule) << ", " << kind.name << ": expected " << pairs
                              << ", delayeds " << delayeds << ", prompts " << prompts);
            CHECK(pairs > 2500);
            // Of the first tick of its window, a shifted opener finds only the singles after it in order.
            const double wanted = rule == DelayedRule::delayed_window ? pairs : pairs * 19 / 20;
            CHECK(std::abs(delayeds - wanted) < 4 * std::sqrt(pairs));
            // A width of tau instead of tau + 1 ticks would differ by more.
            CHECK(pairs - 0.9 * pairs > 4 * std::sqrt(pairs));
            // Prompts: 2 tau + 1 ticks instead of 2 tau + 2.
            CHECK(std::abs(prompts - pairs * 19 / 20) < 4 * std::sqrt(pairs));
        }
    }
}
