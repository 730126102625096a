// The sums over good pairs against the plain double sum, and the delayeds of random singles against what the
// widths of the windows demand.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu/randoms/good_pairs.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/randoms.hpp"
#include "gpu/rules/conversion.hpp"
#include "tests/gpu/arrangements/random_arrangement.hpp"
#include "tests/gpu/backends.hpp"
#include "tests/gpu/setups.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::config::Geometry;
using petacq::gpu::CoincidenceRules;
using petacq::gpu::DelayedRule;
using petacq::gpu::GoodPairs;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::PairProducts;

using petacq::gpu::CrystalValues;
using petacq::gpu::PairChances;
using petacq::gpu::single_kinds;

// Any chances, the same for (i, j) and (j, i).
std::vector<PairChances> chances_for(std::size_t cells, Rng& rng) {
    std::vector<PairChances> all(cells * cells);
    for (std::size_t a = 0; a < cells; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            for (std::size_t x = 0; x < single_kinds; ++x) {
                for (std::size_t y = 0; y < (a == b ? x + 1 : single_kinds); ++y) {
                    const double chance = rng.unit();
                    all[a * cells + b].of[x][y] = chance;
                    all[b * cells + a].of[y][x] = chance;
                }
            }
        }
    }
    return all;
}

// One value for each crystal.
CrystalValues lone(const std::vector<double>& values) {
    const std::vector<double> none(values.size());
    return {{values, none, none}};
}
std::vector<PairChances> once(std::size_t modules) {
    PairChances one;
    one.of[0][0] = 1;
    return std::vector<PairChances>(modules * modules, one);
}

std::string difference(const PairProducts& got, const PairProducts& want) {
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

// The sums over good pairs for several values, from the kind `first` on.
void check_sums(const Geometry& g, const CoincidenceRules& rules, std::size_t first, Rng& rng) {
    GoodPairs pairs(g, rules);
    PairProducts got;
    for (std::size_t kind = first; kind < 5; ++kind) {
        CrystalValues values;
        for (std::vector<double>& of_kind : values.of)
            of_kind = rates_for(g.crystal_count(), kind, rng);
        const std::vector<PairChances> chances = chances_for(pairs.cells().count(), rng);
        INFO("values " << kind << ", min_module_difference " << rules.min_module_difference
                       << ", max_ring_difference " << rules.max_ring_difference);
        pairs.use(values);
        pairs.products(chances, got);
        const std::string differing = difference(got, reference_pair_products(g, rules, values, chances));
        INFO(differing);
        REQUIRE(differing.empty());
        REQUIRE(pairs.total(chances) == got.total);
        // A repetition gives the same bits.
        PairProducts again;
        pairs.use(values);
        pairs.products(chances, again);
        REQUIRE(again.per_crystal == got.per_crystal);
        REQUIRE(again.module_pairs == got.module_pairs);
        REQUIRE(again.total == got.total);
    }
}

}  // namespace

TEST_CASE("good pairs: equal to the plain sum for any geometry and values") {
    Rng rng(17);
    for (int round = 0; round < 40; ++round) {
        const Geometry g = round < 37    ? odd_geometry(rng)
                           : round == 37 ? geometry_of(10, 1, 2, 2, 2, 5, 7)
                           : round == 38 ? geometry_of(19, 1, 1, 1, 1, 3, 3)
                                         : geometry_of(1, 2, 1, 2, 2, 13, 16);
        CoincidenceRules rules;
        rules.min_module_difference = rng.chance(0.4) ? 0 : rng.between(0U, g.modules_in_ring() / 2 + 1);
        if (rng.chance(0.6)) rules.max_ring_difference = rng.between(0U, g.rings());
        // This policy has zones of rings.
        if (rng.chance(0.5)) rules.policy = MultiplesPolicy::take_if_only_one_good;
        INFO("round " << round << ", " << g.crystal_count() << " crystals in " << g.modules_in_ring()
                      << " modules and " << g.rings() << " rings");
        check_sums(g, rules, round < 37 ? 0 : 2, rng);
    }
}

TEST_CASE("good pairs: equal to the plain sum for any arrangement of crystals") {
    Rng rng(18);
    std::size_t with_view = 0;
    for (int round = 0; round < 30; ++round) {
        const RandomArrangement random = random_arrangement(rng, 200);
        const Geometry& g = random.scanner.geometry;
        CoincidenceRules rules;
        if (g.modules_around() > 0 && rng.chance(0.6))
            rules.min_module_difference = rng.between(0U, g.modules_around() / 2);
        if (rng.chance(0.4)) rules.max_ring_difference = rng.between(0U, 5U);
        if (rng.chance(0.5)) rules.policy = MultiplesPolicy::take_if_only_one_good;
        INFO("round " << round << ", " << random.description);
        with_view += g.pairs->field_of_view ? 1 : 0;
        CHECK(petacq::gpu::PairCells::of(g, rules).bins->exact());
        check_sums(g, rules, 0, rng);
    }
    CHECK(with_view > 5);
}

TEST_CASE("good pairs: values calculated by hand") {
    // Four modules of two crystals, one ring.
    const Geometry g = geometry_of(4, 1, 1, 1, 1, 2, 1);
    CoincidenceRules rules;
    rules.min_module_difference = 2;
    const CrystalValues values = lone({1, 2, 0, 5, 3, 4, 0, 0});
    PairProducts r;
    GoodPairs some(g, rules);
    some.use(values);
    some.products(once(4), r);
    REQUIRE(r.modules == 4);
    // Module 0 pairs only with module 2, module 1 only with the empty module 3.
    CHECK(r.per_crystal == std::vector<double>{7, 14, 0, 0, 9, 12, 0, 0});
    CHECK(r.module_pairs[2] == 21);
    CHECK(r.module_pairs[8] == 21);
    CHECK(r.module_pairs[0] == 0);
    CHECK(r.total == 21);

    rules.min_module_difference = 0;
    GoodPairs all(g, rules);
    all.use(values);
    all.products(once(4), r);
    // The two crystals of a module are one pair.
    CHECK(r.module_pairs[0] == 2);
    CHECK(r.module_pairs[2 * 4 + 2] == 12);
    CHECK(r.per_crystal[0] == 14);

    CHECK_THROWS_AS(all.use(lone(std::vector<double>(7))), std::invalid_argument);
    const CrystalValues nothing = lone(std::vector<double>(8));
    all.use(nothing);
    all.products(once(4), r);
    CHECK(r.total == 0);
    CHECK(r.per_crystal == std::vector<double>(8, 0));

    PairProducts sum;
    sum.add(r, 3);
    all.use(values);
    all.products(once(4), r);
    sum.add(r, 2);
    CHECK(sum.total == 2 * r.total);
    CHECK(sum.per_crystal[0] == 28);
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
        const CrystalValues singles = lone({histograms.per_crystal.begin(), histograms.per_crystal.end()});
        GoodPairs good(setup.geometry, options.rules);
        good.use(singles);
        const double products = good.total(once(setup.geometry.modules_in_ring()));
        // Each of two singles may come first.
        const double pairs_per_tick = 2 * products / static_cast<double>(times.back() - start);
        const double window = options.rules.window;
        const double pairs = pairs_per_tick * (window + 0.5);
        const auto delayeds = static_cast<double>(counts.delayeds);
        const auto prompts = static_cast<double>(counts.prompts);
        INFO(backend.name << ", " << name_of(rule) << ": expected " << pairs << ", delayeds " << delayeds
                          << ", prompts " << prompts);
        CHECK(pairs > 2500);
        // Of the first tick of its window, a shifted opener finds only the singles after it in order.
        const double wanted = rule == DelayedRule::delayed_window ? pairs_per_tick * (window + 1) : pairs;
        CHECK(std::abs(delayeds - wanted) < 4 * std::sqrt(pairs));
        // A width of tau instead of tau + 1/2 ticks would differ by more.
        CHECK(pairs_per_tick / 2 > 4 * std::sqrt(pairs) / 3);
        CHECK(std::abs(prompts - pairs) < 4 * std::sqrt(pairs));
    }
}
