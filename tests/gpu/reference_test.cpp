// The reference itself, on examples worked out by hand.
#include <cstring>
#include <initializer_list>
#include <utility>

#include "tests/gpu/generators.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::config::Calibration;
using petacq::config::Geometry;
using petacq::gpu::Coincidence;
using petacq::gpu::CoincidenceRules;
using petacq::gpu::DelayedRule;
using petacq::gpu::Kind;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::Single;
using petacq::gpu::WindowMode;

// 8 modules of 2 crystals around, 3 rings: crystal = in_ring + 16 * ring, module = in_ring / 2.
Geometry small_ring() {
    Geometry g;
    g.channels = 8;
    g.modules = {1, 1, 1};
    g.blocks = {1, 1, 1};
    g.crystals = {1, 2, 3};
    g.bdm_count = 8;
    g.du_count = 1;
    g.position_size = 3;
    return g;
}

CoincidenceRules window_of(std::uint32_t tau) {
    CoincidenceRules rules;
    rules.window = tau;
    return rules;
}

// Singles at the given times, each in a different crystal, 500 keV.
petacq::gpu::RecordVector<Single> at(std::initializer_list<std::uint64_t> times) {
    petacq::gpu::RecordVector<Single> singles;
    std::uint32_t crystal = 0;
    for (const std::uint64_t t : times)
        singles.push_back({t, crystal++, 500.0F});
    return singles;
}

// (time, dt, kind) of each record.
using Brief = std::vector<std::tuple<std::uint64_t, std::uint32_t, int>>;
Brief brief(const Decided& decided) {
    Brief result;
    for (const Coincidence& c : decided.coincidences)
        result.emplace_back(c.time, c.dt, static_cast<int>(c.kind));
    return result;
}
constexpr int prompt = 0;
constexpr int delayed = 1;

// (crystal_a, crystal_b) of each record.
using Crystals = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Crystals crystals(const Decided& decided) {
    Crystals result;
    for (const Coincidence& c : decided.coincidences)
        result.emplace_back(c.crystal_a, c.crystal_b);
    return result;
}

}  // namespace

TEST_CASE("reference: groups are greedy and the window is inclusive") {
    const Decided d = reference_coincidences(at({0, 3, 6, 9}), small_ring(), window_of(3));
    CHECK(brief(d) == Brief{{0, 3, prompt}, {6, 3, prompt}});
    CHECK(d.counts.prompts == 2);
    CHECK(d.counts.decided == 4);
    CHECK(d.counts.unpaired == 0);

    CHECK(brief(reference_coincidences(at({0, 4}), small_ring(), window_of(3))).empty());
    CHECK(brief(reference_coincidences(at({5, 5}), small_ring(), window_of(3))) == Brief{{5, 0, prompt}});
    // The window belongs to its opener; a partner does not extend it.
    const Decided chain = reference_coincidences(at({0, 2, 4}), small_ring(), window_of(3));
    CHECK(brief(chain) == Brief{{0, 2, prompt}});
    CHECK(chain.counts.unpaired == 1);
}

TEST_CASE("reference: order is time, crystal, energy, whatever the order of arrival") {
    const petacq::gpu::RecordVector<Single> arrived{{7, 2, 400}, {7, 1, 600}, {7, 1, 300}, {1, 9, 500}};
    const Decided d = reference_coincidences(arrived, small_ring(), window_of(1));
    REQUIRE(d.singles.size() == 4);
    CHECK(d.singles[0].time == 1);
    CHECK(d.singles[1].energy == 300);
    CHECK(d.singles[2].energy == 600);
    CHECK(d.singles[3].crystal == 2);
    const Decided pair = reference_coincidences({{7, 2, 400}, {7, 1, 600}}, small_ring(), window_of(1));
    REQUIRE(pair.coincidences.size() == 1);
    CHECK(pair.coincidences[0].crystal_a == 1);
    CHECK(pair.coincidences[0].energy_a == 600);
    CHECK(pair.coincidences[0].energy_b == 400);
}

TEST_CASE("reference: good pairs") {
    const Geometry g = small_ring();
    CoincidenceRules rules = window_of(1);
    CHECK_FALSE(reference_good(g, rules, 5, 5));
    CHECK(reference_good(g, rules, 0, 1));
    rules.min_module_difference =
        3;  // crystals 0 and 1 are module 0; 6 is module 3; 10 module 5; 12 module 6
    CHECK_FALSE(reference_good(g, rules, 0, 1));
    CHECK_FALSE(reference_good(g, rules, 0, 5));
    CHECK(reference_good(g, rules, 0, 6));
    CHECK(reference_good(g, rules, 0, 10));
    CHECK_FALSE(reference_good(g, rules, 0, 12));
    CHECK_FALSE(reference_good(g, rules, 12, 0));
    CHECK(reference_good(g, rules, 0, 8 + 32));
    rules.max_ring_difference = 1;
    CHECK(reference_good(g, rules, 0, 8 + 16));
    CHECK(reference_good(g, rules, 8 + 32, 16));
    CHECK_FALSE(reference_good(g, rules, 0, 8 + 32));
}

TEST_CASE("reference: refused pairs are counted by their reason") {
    CoincidenceRules rules = window_of(3);
    rules.min_module_difference = 2;
    const petacq::gpu::RecordVector<Single> singles{{0, 4, 500},  {1, 4, 501},  {10, 4, 500},
                                                    {11, 5, 500}, {20, 4, 500}, {21, 9, 500}};
    const Decided d = reference_coincidences(singles, small_ring(), rules);
    CHECK(d.counts.same_crystal == 2);
    CHECK(d.counts.geometry == 2);
    CHECK(d.counts.prompts == 1);
    CHECK(d.counts.decided == 6);
    rules.mode = WindowMode::every;
    const Decided every = reference_coincidences(singles, small_ring(), rules);
    CHECK(every.counts.same_crystal == 1);
    CHECK(every.counts.geometry == 1);
    CHECK(every.counts.prompts == 1);
    CHECK(every.counts.unpaired == 3);
    CHECK(every.counts.reused == 1);
    CHECK(every.counts.decided == 6);
}

TEST_CASE("reference: each policy on a triple") {
    // Modules 0, 4 and 1; pair (0, 2) is refused. Sums: (0,8) 700, (0,2) 1100, (8,2) 1000.
    CoincidenceRules rules = window_of(5);
    rules.min_module_difference = 2;
    const petacq::gpu::RecordVector<Single> triple{{10, 0, 400}, {12, 8, 300}, {15, 2, 700}};
    auto with = [&](MultiplesPolicy policy) {
        rules.policy = policy;
        return reference_coincidences(triple, small_ring(), rules);
    };
    const Decided removed = with(MultiplesPolicy::remove_multiples);
    CHECK(removed.coincidences.empty());
    CHECK(removed.counts.in_dropped_multiples == 3);
    const Decided all = with(MultiplesPolicy::take_all_goods);
    CHECK(crystals(all) == Crystals{{0, 8}, {8, 2}});
    CHECK(all.counts.prompts == 2);
    CHECK(all.counts.reused == 1);
    CHECK(all.counts.unused_in_multiples == 0);
    const Decided winner = with(MultiplesPolicy::take_winner_of_goods);
    CHECK(crystals(winner) == Crystals{{8, 2}});
    CHECK(winner.counts.unused_in_multiples == 1);
    CHECK(winner.counts.reused == 0);
    CHECK(with(MultiplesPolicy::take_if_only_one_good).coincidences.empty());
    CHECK(with(MultiplesPolicy::take_winner_if_is_good).coincidences.empty());
    CHECK(with(MultiplesPolicy::take_winner_if_all_are_goods).coincidences.empty());

    rules.min_module_difference = 4;  // only (0, 8) is good
    CHECK(crystals(with(MultiplesPolicy::take_if_only_one_good)) == Crystals{{0, 8}});
    CHECK(with(MultiplesPolicy::take_winner_if_is_good).coincidences.empty());
    rules.min_module_difference = 0;  // all are good; the winner is (0, 2)
    CHECK(crystals(with(MultiplesPolicy::take_winner_if_is_good)) == Crystals{{0, 2}});
    CHECK(crystals(with(MultiplesPolicy::take_winner_if_all_are_goods)) == Crystals{{0, 2}});
    CHECK(with(MultiplesPolicy::take_if_only_one_good).coincidences.empty());
}

TEST_CASE("reference: ties between winners go to the first pair") {
    CoincidenceRules rules = window_of(5);
    rules.policy = MultiplesPolicy::take_winner_of_goods;
    CHECK(crystals(reference_coincidences(at({0, 1, 2, 3}), small_ring(), rules)) == Crystals{{0, 1}});
    // The sum is an f32 sum: 16777216 + 1 is 16777216, so the third single's extra keV does not count.
    const petacq::gpu::RecordVector<Single> rounding{{0, 0, 16777216.0F}, {1, 1, 0.25F}, {2, 2, 1.0F}};
    CHECK(crystals(reference_coincidences(rounding, small_ring(), rules)) == Crystals{{0, 1}});
}

TEST_CASE("reference: window mode every forms pairs with the opener only") {
    CoincidenceRules rules = window_of(3);
    rules.mode = WindowMode::every;
    rules.policy = MultiplesPolicy::take_all_goods;
    const Decided d = reference_coincidences(at({0, 1, 3, 9}), small_ring(), rules);
    CHECK(brief(d) == Brief{{0, 1, prompt}, {0, 3, prompt}, {1, 2, prompt}});
    CHECK(d.counts.prompts == 3);
    CHECK(d.counts.unpaired == 2);    // 3 and 9 open empty windows
    CHECK(d.counts.reused == 3 + 1);  // two pairs of one opener, one pair of another
    CHECK(d.counts.decided == 4);
    rules.policy = MultiplesPolicy::remove_multiples;
    const Decided removed = reference_coincidences(at({0, 1, 3, 9}), small_ring(), rules);
    CHECK(brief(removed) == Brief{{1, 2, prompt}});
    CHECK(removed.counts.in_dropped_multiples == 1);
}

TEST_CASE("reference: window mode single_opener has the windows of single and the pairs of their openers") {
    CoincidenceRules rules = window_of(3);
    rules.mode = WindowMode::single_opener;
    rules.policy = MultiplesPolicy::take_all_goods;
    // 1 and 3 lie in the window of 0 and pair with each other in mode "single" only; 1 opens none, as in
    // "every".
    const Decided d = reference_coincidences(at({0, 1, 3, 4, 6, 20}), small_ring(), rules);
    CHECK(brief(d) == Brief{{0, 1, prompt}, {0, 3, prompt}, {4, 2, prompt}});
    CHECK(d.counts.groups == 3);
    CHECK(d.counts.prompts == 3);
    CHECK(d.counts.unpaired == 1);
    CHECK(d.counts.reused == 1);
    CHECK(d.counts.decided == 6);
    rules.policy = MultiplesPolicy::remove_multiples;
    const Decided removed = reference_coincidences(at({0, 1, 3, 4, 6, 20}), small_ring(), rules);
    CHECK(brief(removed) == Brief{{4, 2, prompt}});
    CHECK(removed.counts.in_dropped_multiples == 3);
}

TEST_CASE("reference: groups above max_multiplicity are dropped whatever the policy") {
    CoincidenceRules rules = window_of(3);
    rules.policy = MultiplesPolicy::take_all_goods;
    rules.max_multiplicity = 3;
    const Decided kept = reference_coincidences(at({0, 1, 2}), small_ring(), rules);
    CHECK(kept.counts.prompts == 3);
    CHECK(kept.counts.reused == 3);
    const Decided dropped = reference_coincidences(at({0, 1, 2, 3}), small_ring(), rules);
    CHECK(dropped.counts.prompts == 0);
    CHECK(dropped.counts.in_oversize_multiples == 4);
    rules.mode = WindowMode::every;
    const Decided every = reference_coincidences(at({0, 1, 2, 3}), small_ring(), rules);
    CHECK(every.counts.in_oversize_multiples == 1);
    CHECK(every.counts.prompts == 2 + 1);
}

TEST_CASE("reference: delayed windows") {
    CoincidenceRules rules = window_of(3);
    rules.delay = 100;
    rules.delayeds = DelayedRule::delayed_window;
    // Both edges are inclusive; dt has the delay taken off.
    CHECK(brief(reference_coincidences(at({5, 105}), small_ring(), rules)) == Brief{{5, 0, delayed}});
    CHECK(brief(reference_coincidences(at({5, 108}), small_ring(), rules)) == Brief{{5, 3, delayed}});
    CHECK(brief(reference_coincidences(at({5, 104}), small_ring(), rules)).empty());
    CHECK(brief(reference_coincidences(at({5, 109}), small_ring(), rules)).empty());
    // Singles of a prompt pair open delayed windows, too: {0, 2} prompt, 0 finds 102, 2 finds 102 and 105.
    rules.policy = MultiplesPolicy::take_all_goods;
    const Decided d = reference_coincidences(at({0, 2, 102, 105}), small_ring(), rules);
    CHECK(brief(d) ==
          Brief{{0, 2, prompt}, {0, 2, delayed}, {2, 0, delayed}, {2, 3, delayed}, {102, 3, prompt}});
    CHECK(d.counts.delayeds == 3);
    CHECK(d.counts.prompts == 2);
    CHECK(d.counts.decided == 4);
    rules.policy = MultiplesPolicy::remove_multiples;
    CHECK(reference_coincidences(at({0, 2, 102, 105}), small_ring(), rules).counts.delayeds == 1);
    // Delayed pairs obey the geometry as well.
    CHECK(reference_coincidences({{5, 3, 1}, {105, 3, 1}}, small_ring(), rules).coincidences.empty());
    // Windows that end beyond 2^64 - 1 do not wrap around.
    CHECK(brief(reference_coincidences(at({1, UINT64_MAX - 50}), small_ring(), rules)).empty());
    rules.delay = UINT64_MAX - 10;
    CHECK(brief(reference_coincidences(at({8, UINT64_MAX}), small_ring(), rules)) == Brief{{8, 2, delayed}});
}

TEST_CASE("reference: shifted groups") {
    CoincidenceRules rules = window_of(3);
    rules.delay = 100;
    const auto with = [&](const petacq::gpu::RecordVector<Single>& singles) {
        return reference_coincidences(singles, small_ring(), rules);
    };
    // Both edges are inclusive. A single just before the shifted opener blocks it, one further away does not.
    CHECK(brief(with(at({5, 105}))) == Brief{{5, 0, delayed}});
    CHECK(brief(with(at({5, 108}))) == Brief{{5, 3, delayed}});
    CHECK(with(at({5, 105})).counts.groups == 2);
    CHECK(with(at({5, 105})).counts.groups_blocked == 0);
    CHECK(brief(with(at({5, 109}))).empty());
    CHECK(with(at({5, 102, 106})).counts.groups_blocked == 1);
    CHECK(brief(with(at({5, 101, 106}))) == Brief{{5, 1, delayed}});
    // A group that reaches the shifted opener, but whose window ends before it, does not block.
    CHECK(brief(with(at({5, 101, 104, 106}))) == Brief{{5, 1, delayed}, {101, 3, prompt}});
    // At the time of the shifted opener, crystal and energy decide.
    CHECK(with({{5, 3, 500}, {105, 2, 500}}).counts.groups_blocked == 1);
    CHECK(with({{5, 3, 500}, {105, 3, 499}}).counts.groups_blocked == 1);
    CHECK(with({{5, 3, 500}, {105, 3, 500}}).counts.groups_blocked == 0);
    CHECK(brief(with({{5, 3, 500}, {105, 4, 500}})) == Brief{{5, 0, delayed}});

    // Group {0, 2} with crystals 0 and 1, window {101, 102} with 2 and 3: members 0, 1, 2, 2.
    rules.policy = MultiplesPolicy::take_all_goods;
    const Decided all = with(at({0, 2, 101, 102}));
    CHECK(brief(all) == Brief{{0, 2, prompt},
                              {0, 1, delayed},
                              {0, 2, delayed},
                              {1, 1, delayed},
                              {2, 0, delayed},
                              {101, 1, prompt}});
    CHECK(crystals(all) == Crystals{{0, 1}, {0, 2}, {0, 3}, {2, 1}, {1, 3}, {2, 3}});
    CHECK(all.counts.delayeds == 4);
    CHECK(all.counts.groups == 2);
    rules.mode = WindowMode::every;  // 2 is shifted to 102, and nothing blocks it
    const Decided every = with(at({0, 2, 101, 102}));
    CHECK(every.counts.delayeds == 3);
    CHECK(every.counts.groups == 4);
    CHECK(crystals(every) == Crystals{{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}});
    rules.mode = WindowMode::single;
    rules.policy = MultiplesPolicy::remove_multiples;
    CHECK(with(at({0, 2, 101, 102})).counts.delayed_dropped == 1);
    rules.max_multiplicity = 3;
    CHECK(with(at({0, 2, 101, 102})).counts.delayed_oversize == 1);
    // The winner may lie in the group; then there is no delayed pair. A tie goes to the first pair.
    rules.policy = MultiplesPolicy::take_winner_of_goods;
    CHECK(with({{0, 0, 600}, {2, 1, 600}, {101, 2, 500}}).counts.delayed_dropped == 1);
    CHECK(crystals(with({{0, 0, 600}, {2, 1, 600}, {101, 2, 700}})) == Crystals{{0, 1}, {0, 2}});

    // Shifted openers beyond 2^64 - 1 find nothing, but may be blocked.
    CHECK(brief(with(at({UINT64_MAX - 100, UINT64_MAX}))) == Brief{{UINT64_MAX - 100, 0, delayed}});
    rules.delay = 11;
    CHECK(with(at({UINT64_MAX - 10, UINT64_MAX - 1})).counts.groups_blocked == 1);
    CHECK(with(at({UINT64_MAX - 10, 3, 4})).counts.groups_blocked == 0);
}

TEST_CASE("reference: records of one time are ordered by kind, then crystals") {
    CoincidenceRules rules = window_of(3);
    rules.delay = 100;
    rules.delayeds = DelayedRule::delayed_window;
    rules.policy = MultiplesPolicy::take_all_goods;
    const petacq::gpu::RecordVector<Single> singles{{0, 5, 1}, {0, 2, 1}, {1, 9, 1}, {100, 1, 1}};
    const Decided d = reference_coincidences(singles, small_ring(), rules);
    CHECK(crystals(d) == Crystals{{2, 5}, {2, 9}, {5, 9}, {2, 1}, {5, 1}});
    CHECK(d.coincidences[3].kind == Kind::delayed);
}

TEST_CASE("reference: conversion reads the bytes of the contract's table") {
    petacq::gpu::PipelineOptions options;
    options.geometry = small_ring();
    options.geometry.modules = {1, 1, 2};  // bdm 8..15 are the second row along the axis
    options.geometry.blocks = {1, 2, 2};
    options.geometry.bdm_count = 16;
    options.geometry.du_count = 4;
    options.energy = {true, 300, 600};
    Calibration calibration;
    calibration.position_table.assign(std::size_t{16} * 4 * 9, 6);  // outside
    calibration.energy_factor.assign(std::size_t{16} * 4 * 6 * 50, 0);
    calibration.bins = 50;
    calibration.time_offset.assign(options.geometry.crystal_count(), 0);
    // BDM 9, DU 3, x 1, y 2: entry 1 is local 1 % 3 + (2 - 1 - 0) * 3 = 4.
    calibration.position_table[(9 * 4 + 3) * 9 + 1 + 2 * 3] = 1;
    // ADC 0x01F4 = 500: bin min(50, 49) = 49.
    calibration.energy_factor[((9 * 4 + 3) * 6 + 4) * 50 + 49] = 1.0F;
    // in_ring = 9 % 8 * 4 + 3 / 2 * 2 + 4 / 3 = 7; ring = 9 / 8 * 6 + 3 % 2 * 3 + 4 % 3 = 10; 7 + 10 * 32 =
    // 327.
    calibration.time_offset[327] = -8;

    RawFrame frame;
    auto set = [&frame](std::initializer_list<int> bytes) {
        std::size_t i = 0;
        for (const int b : bytes)
            frame.bytes.at(i++) = static_cast<std::byte>(b);
    };
    const auto good = {0xA3, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 0x01, 0xF4, 0xFF, 0x85};
    set(good);
    const Converted c = reference_convert(frame, options, calibration, {});
    CHECK(c.fate == Fate::accepted);
    CHECK(c.single.time == 0x0102030405060708U - 8);
    CHECK(c.single.crystal == 327);
    CHECK(c.single.energy == 500.0F);
    CHECK(c.temperature_16ths == -16 + 8);

    auto fate_with = [&](std::size_t offset, int byte, Limits limits = {}) {
        set(good);
        frame.bytes.at(offset) = static_cast<std::byte>(byte);
        return reference_convert(frame, options, calibration, limits).fate;
    };
    CHECK(fate_with(0, 0xC3) == Fate::bad_marker);
    CHECK(fate_with(15, 0x84) == Fate::bad_marker);
    CHECK(fate_with(0, 0xA4) == Fate::bad_address);
    CHECK(fate_with(1, 16) == Fate::bad_address);
    CHECK(fate_with(10, 3) == Fate::bad_address);
    CHECK(fate_with(11, 3) == Fate::bad_address);
    CHECK(fate_with(10, 0) == Fate::outside_crystal);
    CHECK(fate_with(12, 0x03) == Fate::above_window);
    const std::uint64_t raw = 0x0102030405060708U;
    CHECK(fate_with(0, 0xA3, {raw, raw, raw - 8}) == Fate::accepted);
    CHECK(fate_with(0, 0xA3, {raw + 1, UINT64_MAX, 0}) == Fate::time_jump);
    CHECK(fate_with(0, 0xA3, {0, raw - 1, UINT64_MAX}) == Fate::time_jump);
    CHECK(fate_with(0, 0xA3, {1, 0, 0}) == Fate::time_jump);
    CHECK(fate_with(0, 0xA3, {0, UINT64_MAX, raw - 7}) == Fate::late);
    CHECK(fate_with(12, 0x03, {0, UINT64_MAX, raw}) == Fate::late);

    set({0xA3, 9, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 0x01, 0xF4, 0, 5});
    CHECK(reference_convert(frame, options, calibration, {}).fate == Fate::bad_time);
    CHECK(reference_convert(frame, options, calibration, {8, 9, 0}).fate == Fate::time_jump);
    options.energy = {true, 500, 500};
    set(good);
    CHECK(reference_convert(frame, options, calibration, {}).fate == Fate::accepted);
    options.energy = {true, 500.5F, 600};
    CHECK(reference_convert(frame, options, calibration, {}).fate == Fate::below_window);
    options.energy.filter = false;
    CHECK(reference_convert(frame, options, calibration, {}).fate == Fate::accepted);
}
