// Coverage: its sets of times, its operations against a slow reference, its JSON form, and files of
// version 1.0.
#include "daemon/coverage/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/intervals.hpp"

using namespace petacq;
using namespace petacq::daemon;
using nlohmann::json;
using namespace petacq::test;

namespace {

config::Coincidence some_rules() {
    config::Coincidence rules{};
    rules.window_ticks = 320;
    rules.max_multiplicity = 64;
    rules.min_module_difference = 2;
    rules.delay_ticks = 6400;
    return rules;
}

Coverage some_coverage(Intervals intervals) {
    Coverage coverage;
    coverage.tick_ps = 1e9;  // a tick is a millisecond
    coverage.intervals = std::move(intervals);
    coverage.anchor =
        TimeAnchor{1000, std::chrono::system_clock::time_point(std::chrono::seconds(1'800'000'000))};
    coverage.activity = StatedActivity{"Rb-82", 75.45, 0.9543, 10.0, coverage.anchor->utc};
    coverage.rules = {some_rules(), config::Energy{true, 350, 650}};
    coverage.loss = {0.9, true};
    coverage.origin = {{{"r", "/data/r"}}, "abc", "def"};
    return coverage;
}

std::string refusal(const std::vector<Coverage>& files) {
    try {
        united(files);
        return "";
    } catch (const CoverageError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("intervals are sets of ticks") {
    constexpr std::size_t all = 75;
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const Intervals a = some_intervals(random, {0, 60}, 5, 11);
        const Intervals b = some_intervals(random, {0, 60}, 5, 11);
        const auto of_a = ticks_in(a, 0, all);
        const auto of_b = ticks_in(b, 0, all);
        const gpu::TickRange range{random() % 60, 60};
        std::vector<bool> both(all);
        std::vector<bool> any(all);
        std::vector<bool> only_a(all);
        std::uint64_t inside = 0;
        for (std::size_t t = 0; t < all; ++t) {
            both[t] = of_a[t] && of_b[t];
            any[t] = of_a[t] || of_b[t];
            only_a[t] = of_a[t] && !of_b[t];
            inside += of_a[t] && t >= range.start && t < range.end ? 1 : 0;
        }
        REQUIRE(ticks_in(a.intersect(b), 0, all) == both);
        REQUIRE(ticks_in(a.unite(b), 0, all) == any);
        REQUIRE(ticks_in(a.without(b), 0, all) == only_a);
        REQUIRE(a.intersect(b) == b.intersect(a));
        REQUIRE(a.ticks() == static_cast<std::uint64_t>(std::count(of_a.begin(), of_a.end(), true)));
        REQUIRE(a.ticks_in(range) == inside);
        for (std::size_t t = 0; t < all; ++t)
            REQUIRE(a.contains(t) == of_a[t]);
        for (std::size_t k = 1; k < a.ranges().size(); ++k)
            REQUIRE(a.ranges()[k - 1].end < a.ranges()[k].start);
    }
}

TEST_CASE("coverage: parts and their union are the whole") {
    const Coverage whole = some_coverage(gpu::TickRange{1000, 161'000});
    const Coverage first = part_of(whole, gpu::TickRange{0, 41'000});
    const Coverage rest = part_of(whole, gpu::TickRange{41'000, UINT64_MAX});
    CHECK(first.seconds() == 40);
    CHECK(rest.seconds() == 120);
    CHECK_FALSE(first.loss.live);  // that of the part is not known
    const Coverage again = united(std::vector{rest, first});
    CHECK(again.intervals == whole.intervals);
    CHECK(again.anchor == whole.anchor);
    CHECK(again.origin == whole.origin);
    CHECK(part_of(whole, gpu::TickRange{0, UINT64_MAX}).loss == whole.loss);
    CHECK(part_of(part_of(whole, gpu::TickRange{0, 9000}), gpu::TickRange{5000, 21'000}).seconds() == 4);
    CHECK(part_of(whole, gpu::TickRange{0, 1000}).intervals->empty());
}

TEST_CASE("coverage: decay is corrected to the start of the run for every part") {
    const Coverage whole = some_coverage(gpu::TickRange{1000, 161'000});
    const double half_life = 75.45;
    // Activity at the reference = counts / time * factor: the same from each part.
    const auto counts = [&](const Coverage& part) {
        double sum = 0;
        for (const gpu::TickRange& range : part.intervals->ranges())
            for (std::uint64_t t = range.start; t < range.end; ++t)
                sum += std::exp2(-(static_cast<double>(t) + 0.5 - 1000) * 1e-3 / half_life) * 1e-3;
        return sum;
    };
    Intervals gate;
    for (std::uint64_t t = 1200; t < 161'000; t += 1000)
        gate = gate.unite(gpu::TickRange{t, t + 250});
    for (const Intervals& times :
         {Intervals(gpu::TickRange{0, UINT64_MAX}), Intervals(gpu::TickRange{141'000, 161'000}), gate}) {
        const Coverage part = part_of(whole, times);
        CHECK(counts(part) / part.seconds() * part.decay_factor(half_life) == Approx(1).epsilon(1e-6));
    }
    CHECK(whole.since_reference_s(141'000) == Approx(140));
    CHECK(*whole.utc_of(141'000) - *whole.utc_of(1000) == std::chrono::seconds(140));
    CHECK_FALSE(whole.utc_of(UINT64_MAX));
}

TEST_CASE("coverage: what does not belong together is not united") {
    const Coverage a = some_coverage(gpu::TickRange{1000, 2000});
    Coverage b = some_coverage(gpu::TickRange{2000, 3000});
    CHECK(refusal({a, b}).empty());
    SECTION("an overlap") {
        b = some_coverage(gpu::TickRange{1999, 3000});
        CHECK_THAT(refusal({a, b}), contains("both cover the ticks 1999 to 2000"));
        CHECK(united(std::vector{a, b}, true).ticks() == 2000);  // files of several hosts
    }
    SECTION("other rules") {
        b.rules.coincidence->window_ticks = 321;
        CHECK_THAT(refusal({a, b}), contains("different rules"));
    }
    SECTION("another energy window") {
        b.rules.energy->upper_keV = 651;
        CHECK_THAT(refusal({a, b}), contains("different rules"));
    }
    SECTION("another scanner") {
        b.origin.scanner_sha256 = "xyz";
        CHECK_THAT(refusal({a, b}), contains("scanners differ"));
    }
    SECTION("other ticks") {
        b.tick_ps = 2e9;
        CHECK_THAT(refusal({a, b}), contains("ticks differ"));
    }
    SECTION("another zero of detector time") {
        b.anchor->utc += std::chrono::hours(1);
        CHECK_THAT(refusal({a, b}), contains("different zeros"));
    }
    SECTION("another calibration is no contradiction in the records") {
        b.origin.calibration_sha256 = "other";
        CHECK(united(std::vector{a, b}).origin.calibration_sha256.empty());
    }
}

TEST_CASE("coverage: each of several runs has the times that it contributed") {
    const Coverage a = some_coverage(gpu::TickRange{1000, 5000});
    Coverage b = some_coverage(gpu::TickRange{2000, 9000});  // at the same time, by another detector
    b.origin.runs = {{"s", "/data/s"}};
    const auto times_of = [](const Coverage& coverage, const std::string& run_id) {
        for (const OriginRun& run : coverage.origin.runs)
            if (run.run_id == run_id) return run.times;
        return std::optional(Intervals());
    };
    const Coverage both =
        united(std::vector{part_of(a, gpu::TickRange{0, 3000}), part_of(b, gpu::TickRange{4000, 6000}),
                           part_of(a, gpu::TickRange{3000, 4000})});
    CHECK(times_of(both, "r") == Intervals(gpu::TickRange{1000, 4000}));
    CHECK(times_of(both, "s") == Intervals(gpu::TickRange{4000, 6000}));
    CHECK(coverage_from_json(to_json(both)).origin == both.origin);
    const Coverage part = part_of(both, gpu::TickRange{3500, 4500});
    CHECK(times_of(part, "r") == Intervals(gpu::TickRange{3500, 4000}));
    CHECK(times_of(part, "s") == Intervals(gpu::TickRange{4000, 4500}));
    CHECK(times_of(what_survived(both, gpu::TickRange{0, 4500}), "s") ==
          Intervals(gpu::TickRange{4000, 4500}));
    // A part of one of them belongs to that one, and has its times.
    CHECK(part_of(both, gpu::TickRange{4500, 9000}).origin == b.origin);
    CHECK(part_of(both, gpu::TickRange{0, 10}).origin.runs.size() == 2);
    // Hosts that recorded at the same time.
    const Coverage hosts = part_of(united(std::vector{a, b}, true), gpu::TickRange{3000, 7000});
    CHECK(times_of(hosts, "r") == Intervals(gpu::TickRange{3000, 5000}));
    CHECK(times_of(hosts, "s") == Intervals(gpu::TickRange{3000, 7000}));

    // A file of an earlier version does not say which run has which times.
    json old = to_json(both);
    for (json& run : old["origin"]["runs"])
        run.erase("intervals");
    const Coverage unsaid = coverage_from_json(old);
    CHECK_FALSE(times_of(unsaid, "r"));
    CHECK(part_of(unsaid, gpu::TickRange{4500, 9000}).origin.runs.size() == 2);
    Coverage more = some_coverage(gpu::TickRange{6000, 7000});
    more.origin.runs = {{"t", "/data/t"}};
    const Coverage three = united(std::vector{unsaid, more});
    CHECK(times_of(three, "r") == both.intervals);
    CHECK(times_of(three, "t") == more.intervals);
}

TEST_CASE("coverage: its JSON form reads back") {
    Coverage coverage = some_coverage(Intervals({{1000, 2000}, {3000, 18'446'744'073'709'551'615U}}));
    coverage.unknown = {"the time of day"};
    const json document = to_json(coverage);
    CHECK(to_json(coverage_from_json(document)) == document);
    CHECK(to_json(coverage_from_json(json::parse(document.dump()))) == document);
    const Coverage nothing;
    CHECK(to_json(coverage_from_json(to_json(nothing))) == to_json(nothing));
    for (const char* bad : {R"({})", R"({"version": 2})", R"([])", R"({"version": 1, "tick_ps": "x"})",
                            R"({"version": 1, "tick_ps": 1, "intervals": [[2, 1]]})",
                            R"({"version": 1, "tick_ps": 1, "intervals": [[1]]})",
                            R"({"version": 1, "tick_ps": 1, "intervals": [[-1, 1]]})",
                            R"({"version": 1, "tick_ps": 1, "rules": {"coincidence": {}}})"})
        CHECK_THROWS_AS(coverage_from_json(json::parse(bad)), std::invalid_argument);
}

TEST_CASE("coverage: what is outside of its range is refused, with what was expected") {
    const json good = to_json(some_coverage(gpu::TickRange{1000, 161'000}));
    const auto refused = [&](const char* member, const json& value) {
        json document = good;
        document[json::json_pointer(member)] = value;
        try {
            (void)coverage_from_json(document);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    CHECK(refused("/tick_ps", -1) == "coverage: tick_ps: expected a number from 0 to 1e9, found -1");
    CHECK(refused("/loss/live", 1.5) == "coverage: live: expected a share from 0 to 1, or null, found 1.5");
    CHECK(refused("/anchor/ticks", 1.5) == "coverage: ticks: expected a number of ticks, found 1.5");
    CHECK(refused("/anchor/unix_ns", UINT64_MAX) ==
          "coverage: unix_ns: expected nanoseconds since 1970, found 18446744073709551615");
    CHECK(refused("/activity/half_life_s", 0) == "coverage: half_life_s: expected a number above 0, found 0");
    CHECK(refused("/activity/activity_MBq", -1) ==
          "coverage: activity_MBq: expected a number of at least 0, or null, found -1");
    CHECK(refused("/activity/nuclide", 9) == "coverage: nuclide: expected a name, found 9");
    CHECK(refused("/rules/energy/filter", 9) == "coverage: /energy/filter: expected true or false, found 9");
    CHECK(refused("/rules/coincidence/window_ticks", std::uint64_t{1} << 33)
              .starts_with("coverage: /coincidence/window_ticks: expected an integer from "));
    CHECK(refused("/intervals", json::parse("[[5, 4]]")) ==
          "coverage: expected an interval that does not end before it starts, found [5, 4]");
}

TEST_CASE("coverage: no time of day is beyond the clock") {
    Coverage coverage = some_coverage(gpu::TickRange{1000, 161'000});
    coverage.anchor->utc = std::chrono::system_clock::time_point(std::chrono::seconds(8'900'000'000));
    CHECK(coverage.utc_of(161'000) == coverage.anchor->utc + std::chrono::seconds(160));
    CHECK_FALSE(coverage.utc_of(1000 + 200'000'000'000));  // a tick is a millisecond
    CHECK_FALSE(coverage.activity_MBq_at(1000 + 200'000'000'000));
    coverage.activity->assay = std::chrono::system_clock::time_point::min();
    CHECK(coverage.activity_MBq_at(1000) == Approx(0));
}

TEST_CASE("coverage: a rule that is not stated has the default of its key") {
    // Another value than the default for each key.
    config::Coincidence coincidence = some_rules();
    coincidence.window_mode = config::WindowMode::every;
    coincidence.multiples_policy = config::MultiplesPolicy::take_all_goods;
    coincidence.max_multiplicity = 8;
    coincidence.max_ring_difference = 5;
    coincidence.delayeds = config::DelayedRule::delayed_window;
    Coverage coverage = some_coverage(gpu::TickRange{1000, 2000});
    coverage.rules = {coincidence, config::Energy{false, 400, 600}};
    const json document = to_json(coverage);
    int without_default = 0;
    for (const char* section : {"coincidence", "energy"}) {
        const json& declared = config::configuration_schema().at("properties").at(section).at("properties");
        for (const auto& [key, value] : document.at("rules").at(section).items()) {
            CAPTURE(section, key);
            json lacking = document;
            lacking["rules"][section].erase(key);
            if (key == "window_ticks") {
                ++without_default;
                CHECK_THROWS_WITH(coverage_from_json(lacking),
                                  "coverage: /coincidence/window_ticks: missing, and it has no default");
                continue;
            }
            json expected = document;
            expected["rules"][section][key] = declared.at(key).at("default");
            CHECK(value != declared.at(key).at("default"));
            CHECK(to_json(coverage_from_json(lacking)) == expected);
        }
    }
    CHECK(without_default == 1);
    json newer = document;
    newer["rules"]["coincidence"]["of_a_later_version"] = 1;
    CHECK(to_json(coverage_from_json(newer)) == document);
    json wrong = document;
    wrong["rules"]["energy"]["lower_keV"] = "low";
    CHECK_THROWS_WITH(coverage_from_json(wrong), contains("coverage: /energy/lower_keV: "));
}

TEST_CASE("coverage: what files of 1.0 say") {
    // As a file is read: whole numbers without a sign.
    const auto parsed = [](const json& document) { return json::parse(document.dump()); };
    const json run = parsed({{"start_ticks", 0},
                             {"stop_ticks", 3'604'000},
                             {"start_utc", "2026-11-26T12:00:00.000Z"},
                             {"stop_utc", "2026-11-26T12:00:06.000Z"},
                             {"scanner", {{"tick_ps", 1e9}}},
                             {"expected_randoms", {{"data_s", 4.0}}}});
    json description = {{"tick_ps", 1e9}, {"run_id", "r"}, {"window_ticks", 320}, {"delay_ticks", nullptr}};
    SECTION("a run began with its data, also where it says otherwise") {
        const Coverage coverage = coverage_of(parsed(description), run, true);
        CHECK(coverage.intervals == Intervals(gpu::TickRange{3'600'000, 3'604'000}));
        REQUIRE(coverage.anchor);
        CHECK(coverage.anchor->ticks == 3'600'000);
        CHECK(coverage.rules.coincidence->window_ticks == 320);
        CHECK_FALSE(coverage.unknown.empty());  // its limits
    }
    SECTION("a cut") {
        description["cut"] = {{"from_ticks", 3'601'000}, {"to_ticks", 3'603'000}};
        CHECK(coverage_of(parsed(description), run, false).seconds() == 2);
        description["cut"]["gate"] = 2;
        description["cut"]["open_ticks"] = 700;
        CHECK(coverage_of(parsed(description), run, false).seconds() == Approx(0.7));
    }
    SECTION("a phase says for how long, not when") {
        description["gate"] = {{"live_ticks", 1000}};
        const Coverage phase = coverage_of(parsed(description), run, false);
        CHECK(phase.seconds() == 1);
        CHECK(part_of(phase, gpu::TickRange{3'600'000, 3'602'000}).seconds() == Approx(0.5));
    }
    SECTION("of a merge nobody knows") {
        description["merged"] = {"a", "b"};
        const Coverage merged = coverage_of(parsed(description), run, false);
        CHECK_FALSE(merged.intervals);
        CHECK(merged.seconds() == 0);
    }
}
