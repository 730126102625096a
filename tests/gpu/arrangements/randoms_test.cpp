// The expected randoms of any scanner against the truth: prompts whose singles come from two annihilations.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms/good_pairs.hpp"
#include "gpu/randoms/randoms.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tests/gpu/arrangements/annihilations.hpp"
#include "tests/gpu/base/random_arrangement.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

struct Searched {
    std::uint64_t randoms = 0;
    std::uint64_t delayeds = 0;
    gpu::IntervalSums sums;
};

Searched search(const Annihilations& events, const gpu::PipelineOptions& options,
                const config::Calibration& calibration) {
    const auto pipeline = gpu::make_cpu_pipeline(options, calibration);
    const gpu::FrameSpan span{reinterpret_cast<const std::byte*>(events.singles.data()),
                              static_cast<std::uint32_t>(events.singles.size()), 0, UINT64_MAX};
    gpu::Slice slice;
    slice.spans = {&span, 1};
    slice.watermark = UINT64_MAX;
    slice.close_at = UINT64_MAX;
    slice.ends_interval = true;
    pipeline->submit(slice);
    gpu::SliceResult result;
    REQUIRE(pipeline->collect(result, true));
    Searched found;
    for (const gpu::Coincidence& pair : result.coincidences) {
        if (pair.kind == gpu::Kind::delayed) {
            ++found.delayeds;
        } else if (events.random(pair)) {
            ++found.randoms;
        }
    }
    found.sums = result.sums;
    return found;
}

struct Conditions {
    double radius_mm = 0;  ///< of the cylinder, and half of its length
    double half_length_mm = 0;
    double part = 0.01;  ///< by how much of the truth an estimate may be off
    /// The same of the expected randoms where RandomsEstimator::most_refused is exceeded.
    std::optional<double> part_where_refused = {};
    std::optional<std::uint32_t> max_ring_difference = {};
    std::uint64_t seed = 51;
    std::size_t annihilations = 250'000;
    double gap = 500;  ///< mean time between annihilations; the window is 50
};

/// Whether the scanner finds enough of the cylinder for an estimate to be compared: of the pairs of crystals
/// at least 3 % see it, and half of these are good.
bool sees(const config::Geometry& g, const Conditions& conditions) {
    constexpr int tries = 20'000;
    const gpu::PairRule rule = gpu::PairRule::of(g, {});
    Rng rng(1);
    int seen = 0;
    int good = 0;
    for (int i = 0; i < tries; ++i) {
        const auto a = static_cast<std::uint32_t>(rng.index(g.crystal_count()));
        const auto b = static_cast<std::uint32_t>(rng.index(g.crystal_count()));
        if (!passes(g.pairs->crystals[a], g.pairs->crystals[b], conditions.radius_mm * 1000,
                    conditions.half_length_mm * 1000))
            continue;
        ++seen;
        good += rule.good(a, b) ? 1 : 0;
    }
    return seen > 0.03 * tries && 2 * good > seen;
}

config::Scanner example(const std::string& name) {
    return config::load_scanner(std::string(PETACQ_SOURCE_DIR) + "/config/examples/scanners/" + name +
                                ".scanner.json");
}

gpu::PipelineOptions options_for(const config::Geometry& g, const Conditions& conditions,
                                 const Annihilations& events) {
    gpu::PipelineOptions options;
    options.input = gpu::Input::singles;
    options.geometry = g;
    options.energy.filter = false;
    options.rules.window = 50;
    options.rules.delay = 4000;
    if (conditions.max_ring_difference) options.rules.max_ring_difference = *conditions.max_ring_difference;
    options.max_slice_frames = static_cast<std::uint32_t>(events.singles.size());
    return options;
}

config::Calibration unit_calibration(const config::Geometry& g) {
    config::Calibration calibration;
    calibration.bins = 1;
    calibration.position_table.assign(std::size_t{g.unit_count()} * g.position_size * g.position_size, 0);
    calibration.energy_factor.assign(std::size_t{g.unit_count()} * g.crystals_per_du(), 1.0F);
    return calibration;
}

/// Every policy and mode.
void check_randoms(const std::string& name, const config::Geometry& g, const Conditions& conditions) {
    Rng rng(conditions.seed);
    const Annihilations events = annihilations(*g.pairs, conditions.radius_mm, conditions.half_length_mm,
                                               conditions.annihilations, conditions.gap, 0.15, rng);
    const config::Calibration calibration = unit_calibration(g);
    gpu::PipelineOptions options = options_for(g, conditions, events);
    for (const auto mode :
         {gpu::WindowMode::single, gpu::WindowMode::every, gpu::WindowMode::single_opener}) {
        for (int policy = 0; policy < 6; ++policy) {
            options.rules.mode = mode;
            options.rules.policy = static_cast<gpu::MultiplesPolicy>(policy);
            const Searched found = search(events, options, calibration);
            gpu::RandomsEstimator estimator(g, options.rules);
            gpu::ExpectedRandoms expected;
            estimator.estimate(found.sums, events.ticks, expected);
            const auto truth = static_cast<double>(found.randoms);
            const double from_delayeds = estimator.delayeds_weight() * static_cast<double>(found.delayeds);
            INFO(name << ", gap " << conditions.gap << ", seed " << conditions.seed << ", mode "
                      << static_cast<int>(mode) << ", policy " << policy << ": " << truth
                      << " randoms, expected " << expected.total / truth << " of them, by delayeds "
                      << from_delayeds / truth);
            // Two annihilations give up to four pairs at once, of which the other policies take one.
            const double noise =
                std::sqrt(truth) * (options.rules.policy == gpu::MultiplesPolicy::take_all_goods ? 2 : 1);
            // The chances that two pairs of a window are good are not quite independent.
            const bool all_good = mode == gpu::WindowMode::single &&
                                  options.rules.policy == gpu::MultiplesPolicy::take_winner_if_all_are_goods;
            const double part = conditions.part * (all_good ? 2 : 1);
            CHECK(truth > 400);
            const bool refused = estimator.refused_partners() > gpu::RandomsEstimator::most_refused;
            const double of_expected = refused ? conditions.part_where_refused.value_or(part) : part;
            CHECK(std::abs(expected.total - truth) < 3.5 * noise + of_expected * truth);
            CHECK(std::abs(from_delayeds - truth) < 3.5 * std::sqrt(2.0) * noise + part * truth);
            // By pairs they add up to the same, and over the crystals to twice as many.
            double of_crystals = 0;
            for (const double randoms : expected.per_crystal)
                of_crystals += randoms;
            CHECK(of_crystals == Approx(2 * expected.total).epsilon(1e-6));
        }
    }
}

}  // namespace

TEST_CASE("randoms: as many as there are in a box of panels") {
    check_randoms("box", example("box").geometry, {10, 15});
}
TEST_CASE("randoms: as many as there are with an insert, three kinds of pairs and a field of view") {
    check_randoms("insert", example("insert").geometry, {15, 15});
}
TEST_CASE("randoms: as many as there are between two heads") {
    check_randoms("two-heads", example("two-heads").geometry, {10, 15});
}
TEST_CASE("randoms: as many as there are with a least angle and rings of different types") {
    check_randoms("two-rings", example("two-rings").geometry, {15, 10, 0.01, {}, 12});
}
TEST_CASE("randoms: as many as there are where a third of the windows hold another annihilation") {
    Conditions conditions{10, 15, 0.005};
    conditions.annihilations = 500'000;
    conditions.gap = 150;
    check_randoms("box", example("box").geometry, conditions);
}

TEST_CASE("randoms: as many as there are where boards read crystals of several sides or crystals are few") {
    // In the last one the parts of modules by side are far from the numbers of their singles.
    for (const std::uint64_t seed : {803, 817, 995}) {
        Rng rng(seed);
        Conditions conditions{8, 8};
        conditions.seed = seed;
        conditions.gap = 250;
        conditions.annihilations = 150'000;
        check_randoms("random", random_arrangement(rng).scanner.geometry, conditions);
    }
}

namespace {

struct Uncertainty {
    bool uncertain = false;
    double refused = 0;  ///< RandomsEstimator::refused_partners()
    double truth = 0;    ///< the same of the true pairs that have two singles
};

Uncertainty uncertainty_of(const config::Geometry& g, gpu::MultiplesPolicy policy,
                           std::optional<std::uint32_t> max_ring_difference) {
    Conditions conditions{12, 10};
    conditions.max_ring_difference = max_ring_difference;
    Rng rng(54);
    const Annihilations events =
        annihilations(*g.pairs, conditions.radius_mm, conditions.half_length_mm, 60'000, 500, 0.15, rng);
    gpu::PipelineOptions options = options_for(g, conditions, events);
    options.rules.mode = gpu::WindowMode::every;
    options.rules.policy = policy;
    gpu::RandomsEstimator estimator(g, options.rules);
    gpu::ExpectedRandoms expected;
    estimator.estimate(search(events, options, unit_calibration(g)).sums, events.ticks, expected);
    const gpu::PairCells cells = gpu::PairCells::of(g, options.rules);
    std::map<std::uint32_t, std::vector<std::uint32_t>> crystals;  // by annihilation
    for (const gpu::Single& single : events.singles)
        crystals[events.annihilation(single.energy)].push_back(single.crystal);
    double all = 0;
    double good = 0;
    for (const auto& [annihilation, of_it] : crystals) {
        if (of_it.size() < 2) continue;
        const auto side = [&](std::size_t i) { return cells.side_of(cells.of_crystal(of_it[i])); };
        if (!cells.can_join(side(0), side(1))) continue;
        ++all;
        good += cells.rule.good(of_it[0], of_it[1]) ? 1 : 0;
    }
    return {estimator.uncertain(), estimator.refused_partners(), 1 - good / all};
}

}  // namespace

TEST_CASE(
    "randoms: uncertain where geometry refuses more than 30 % of the true pairs, under policies that ask") {
    using Policy = gpu::MultiplesPolicy;
    const config::Geometry g = example("two-rings").geometry;
    for (const auto policy : {Policy::take_winner_of_goods, Policy::take_if_only_one_good,
                              Policy::take_winner_if_all_are_goods}) {
        const Uncertainty few = uncertainty_of(g, policy, 12);
        INFO(few.refused << " refused, " << few.truth);
        CHECK(few.refused == Approx(few.truth).margin(0.03));
        CHECK(few.truth < 0.2);
        CHECK_FALSE(few.uncertain);
        const Uncertainty many = uncertainty_of(g, policy, 4);
        INFO(many.refused << " refused, " << many.truth);
        CHECK(many.refused == Approx(many.truth).margin(0.05));
        CHECK(many.truth > 0.4);
        CHECK(many.uncertain);
    }
    CHECK_FALSE(uncertainty_of(g, Policy::take_winner_if_is_good, 4).uncertain);
    CHECK_FALSE(uncertainty_of(g, Policy::take_winner_of_goods, {}).uncertain);
}

TEST_CASE("randoms: uncertain with two modules that read crystals of several sides") {
    Rng rng(1215);
    const config::Geometry g = random_arrangement(rng).scanner.geometry;
    const Uncertainty found = uncertainty_of(g, gpu::MultiplesPolicy::take_winner_of_goods, {});
    CHECK(found.refused < gpu::RandomsEstimator::most_refused);
    CHECK(found.uncertain);
    CHECK_FALSE(uncertainty_of(g, gpu::MultiplesPolicy::remove_multiples, {}).uncertain);
}

TEST_CASE("randoms of any scanner: more examples and loads", "[.long]") {
    for (const std::string name :
         {"phoswich", "hexagon", "partial-ring", "unequal-blocks", "monolithic", "two-rings"}) {
        const config::Geometry g = example(name).geometry;
        for (const double gap : {2000, 500, 250, 150}) {
            Conditions conditions{12, 10};
            conditions.seed = 700;
            conditions.gap = gap;
            conditions.annihilations = gap > 500 ? 600'000 : 250'000;
            check_randoms(name, g, conditions);
        }
    }
}

TEST_CASE("randoms of any scanner: random descriptions", "[.long]") {
    std::size_t checked = 0;
    for (std::uint64_t seed = 800; checked < 24; ++seed) {
        Rng rng(seed);
        const RandomArrangement random = random_arrangement(rng);
        const config::Geometry& g = random.scanner.geometry;
        Conditions conditions{8, 8};
        if (!sees(g, conditions)) continue;
        conditions.seed = seed;
        conditions.part_where_refused = 0.12;
        conditions.gap = seed % 2 == 0 ? 500 : 250;
        INFO(random.description);
        check_randoms("random", g, conditions);
        ++checked;
    }
}

TEST_CASE("good pairs: with a field of view and many crystals, sums are near those over all pairs") {
    const config::Geometry g = example("insert").geometry;
    gpu::GoodPairs pairs(g, {});
    REQUIRE_FALSE(pairs.cells().bins->exact());
    // Rates that differ around the axis, along it, and from crystal to crystal.
    Rng rng(52);
    gpu::CrystalValues values;
    for (std::vector<double>& of_kind : values.of)
        of_kind.assign(g.crystal_count(), 0);
    std::vector<double>& rates = values.of.front();
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        const auto& c = g.pairs->crystals[i];
        const double z = c.z_um / 1000.0;
        rates[i] = (1 + 0.5 * c.x_um / std::hypot(c.x_um, c.y_um)) * std::exp(-z * z / 2000) *
                   (0.7 + 0.6 * rng.unit());
    }
    gpu::PairChances once;
    once.of[0][0] = 1;
    const std::size_t cells = pairs.cells().count();
    gpu::PairProducts found;
    pairs.use(values);
    pairs.products(std::vector<gpu::PairChances>(cells * cells, once), found);
    double all_found = 0;
    double all_exact = 0;
    for (std::uint32_t i = 0; i < g.crystal_count(); i += 31) {
        double exact = 0;
        for (std::uint32_t j = 0; j < g.crystal_count(); ++j)
            exact += pairs.rule().good(i, j) ? rates[i] * rates[j] : 0;
        INFO("crystal " << i);
        CHECK(found.per_crystal[i] == Approx(exact).epsilon(0.06));
        all_found += found.per_crystal[i];
        all_exact += exact;
    }
    CHECK(all_found == Approx(all_exact).epsilon(0.003));
}
