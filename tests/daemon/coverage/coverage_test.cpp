// Coverage: its sets of times, its operations against a slow reference, its JSON form, and files of
// version 1.0.
#include "daemon/coverage/coverage.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

using Ticks = std::set<std::uint64_t>;

Ticks ticks_of(const Intervals& intervals) {
    Ticks all;
    for (const gpu::TickRange& range : intervals.ranges())
        for (std::uint64_t t = range.start; t < range.end; ++t)
            all.insert(t);
    return all;
}

Intervals some_intervals(std::mt19937_64& random) {
    std::vector<gpu::TickRange> ranges;
    for (std::uint64_t i = random() % 6; i > 0; --i) {
        const std::uint64_t start = random() % 60;
        ranges.push_back({start, start + random() % 12});
    }
    return Intervals(ranges);
}

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
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const Intervals a = some_intervals(random);
        const Intervals b = some_intervals(random);
        const Ticks of_a = ticks_of(a);
        const Ticks of_b = ticks_of(b);
        Ticks both;
        Ticks any = of_a;
        for (const std::uint64_t t : of_b) {
            any.insert(t);
            if (of_a.contains(t)) both.insert(t);
        }
        REQUIRE(ticks_of(a.intersect(b)) == both);
        REQUIRE(ticks_of(a.unite(b)) == any);
        REQUIRE(a.intersect(b) == b.intersect(a));
        REQUIRE(a.ticks() == of_a.size());
        const gpu::TickRange range{random() % 60, 60};
        std::uint64_t inside = 0;
        for (const std::uint64_t t : of_a)
            inside += t >= range.start && t < range.end ? 1 : 0;
        REQUIRE(a.ticks_in(range) == inside);
        for (std::uint64_t t = 0; t < 75; ++t)
            REQUIRE(a.contains(t) == of_a.contains(t));
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
