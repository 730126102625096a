// What petlm resort searches, and says that it has searched.
#include <array>

#include "daemon/run/ledger.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/system/utc.hpp"
#include "tests/tools/petlm/covered.hpp"
#include "tests/tools/petlm/resort/support.hpp"
#include "tests/tools/petlm/tags.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

using namespace petacq;
using namespace petacq::test;
using daemon::Intervals;
using daemon::RecordKind;
using gpu::TickRange;

namespace {

constexpr std::uint64_t second = 1'000'000;  ///< ticks, of resort_scanner()

const nlohmann::json& with_window() {
    static const nlohmann::json coincidence = {{"window_ticks", 40}, {"delay_ticks", 700}};
    return coincidence;
}

gpu::CoincidenceRules rules() {
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.delay = 700;
    return rules;
}

/// A run whose singles say what they cover.
void write_covered_run(const std::filesystem::path& run, const Singles& singles, const Intervals& times,
                       const nlohmann::json& changes = nlohmann::json::object()) {
    const daemon::Coverage coverage = covered_by_run(run, times, resort_scanner().tick_ps);
    nlohmann::json stated = {{"operator", {{"nuclide", "F-18"}}}};
    daemon::state_in(stated, coverage);
    stated.merge_patch(changes);
    write_singles_run(run, singles, with_window(), times.span().start, times.span().end, stated);
    write_covered(run / "singles.plm", RecordKind::singles, singles, coverage);
}

petlm::ResortOptions options_for(const std::filesystem::path& output,
                                 std::vector<std::filesystem::path> runs) {
    petlm::ResortOptions options;
    options.input.runs = std::move(runs);
    options.output = output;
    options.backend = "cpu";
    options.threads = 2;
    options.shard_singles = 500;
    return options;
}

std::vector<TickRange> seconds_of(const std::filesystem::path& run) {
    std::vector<TickRange> seconds;
    daemon::SecondsReader reader(run / "seconds.plm");
    while (reader.next())
        seconds.push_back({reader.start(), reader.start() + reader.length()});
    return seconds;
}

std::uint64_t sum_over_seconds(const std::filesystem::path& run, const char* field) {
    std::uint64_t sum = 0;
    daemon::SecondsReader reader(run / "seconds.plm");
    while (reader.next())
        sum += reader.values(*reader.find(field)).whole();
    return sum;
}

}  // namespace

TEST_CASE("resort: run.json, header and seconds say what was searched, and by which rules",
          "[resort][coverage]") {
    const TemporaryDirectory directory;
    std::mt19937_64 random(3);
    Singles singles = difficult("dense", 40, random, 2000);
    for (gpu::Single& s : singles)
        s.time += second - 5000;
    const TickRange times{singles.front().time - 500, 4 * second + 7};
    write_covered_run(directory / "run", singles, times);
    write_covered(directory / "run" / "tags.plm", RecordKind::tags,
                  std::vector{tag(times.start, 1, gpu::TagKind::trigger, 1),
                              tag(2 * second, 1, gpu::TagKind::trigger, 2)},
                  covered_by_run(directory / "run", times, resort_scanner().tick_ps));

    auto options = options_for(directory / "new", {directory / "run"});
    options.max_ring_difference = 3;
    options.input.from = second - 1000;
    options.input.to = 100 * second;  // beyond the run
    REQUIRE(quietly_resort(options) == petlm::ok);
    const TickRange searched{second - 1000, times.end};
    const auto run = nlohmann::json::parse(read_file(directory / "new" / "run.json"));
    CHECK(run["state"] == "complete");
    CHECK(run["start_ticks"] == searched.start);
    CHECK(run["stop_ticks"] == searched.end);
    const double later_s = static_cast<double>(searched.start - times.start) * 1e-6;
    const daemon::Coverage stated = daemon::coverage_of_run(run);
    CHECK(stated.intervals == Intervals(searched));
    CHECK(run["start_utc"] == daemon::utc_text(*stated.utc_of(searched.start)));
    CHECK(run["stop_utc"] == daemon::utc_text(*stated.utc_of(searched.end)));
    CHECK(run["operator"]["activity_at_start_MBq"].get<double>() ==
          Approx(12 * std::exp2(-later_s / 6586.2)));
    // The same moment for all parts of a run.
    CHECK(stated.reference_ticks() == times.start);
    for (const RecordKind kind : {RecordKind::coincidences, RecordKind::tags, RecordKind::seconds}) {
        const daemon::Coverage found = coverage_in(directory / "new", kind);
        CHECK(found.intervals == Intervals(searched));
        CHECK(found.origin.runs == std::vector<daemon::OriginRun>{{"run", directory / "new"}});
        if (kind == RecordKind::tags) continue;
        REQUIRE(found.rules.coincidence);
        CHECK(found.rules.coincidence->max_ring_difference == 3);
        CHECK(found.rules.coincidence->window_ticks == 40);
        CHECK(found.rules.energy);
    }
    CHECK(seconds_of(directory / "new") == std::vector<TickRange>{{second - 1000, second},
                                                                  {second, 2 * second},
                                                                  {2 * second, 3 * second},
                                                                  {3 * second, 4 * second},
                                                                  {4 * second, 4 * second + 7}});

    // A file belongs to the run of the singles, whose seconds are by other rules.
    options.output = directory / "run" / "narrow.plm";
    REQUIRE(quietly_resort(options) == petlm::ok);
    const daemon::Coverage of_file = coverage_in(options.output, RecordKind::coincidences);
    CHECK(of_file.intervals == Intervals(searched));
    CHECK(of_file.rules.coincidence->max_ring_difference == 3);
    CHECK(of_file.origin.runs == std::vector<daemon::OriginRun>{{"run", directory / "run"}});

    options.input.from = 5 * second;
    options.force = true;
    CHECK_THROWS_WITH(quietly_resort(options), contains("expected a part of the ticks"));
}

TEST_CASE("resort: a run that was acquired with spectra, in one process and in parts", "[resort][coverage]") {
    const TemporaryDirectory directory;
    std::mt19937_64 random(4);
    const Singles singles = difficult("dense", 40, random, 3000);
    const TickRange times{0, singles.back().time + 100};
    write_covered_run(directory / "run", singles, times,
                      {{"configuration", {{"spectra", {{"enabled", true}}}}}});
    auto options = options_for(directory / "one", {directory / "run"});
    REQUIRE(quietly_resort(options) == petlm::ok);
    const auto expected = found_at_once(singles, rules()).coincidences;
    CHECK(same_bytes(read_coincidences(directory / "one" / "coincidences.plm"), expected));

    options.output = directory / "parts";
    gpu::RecordVector<gpu::Coincidence> all;
    for (const std::uint32_t number : {3U, 1U, 2U}) {
        options.part = petlm::Share{number, 3};
        REQUIRE(quietly_resort(options) == petlm::ok);
    }
    options.part.reset();
    options.join = true;
    REQUIRE(quietly_resort(options) == petlm::ok);
    // Each part covers its share.
    const auto files = petlm::record_files(directory / "parts", RecordKind::coincidences);
    REQUIRE(files.size() >= 3);
    std::uint64_t ticks = 0;
    for (const auto& file : files) {
        const auto part = read_coincidences(file);
        all.insert(all.end(), part.begin(), part.end());
        ticks += coverage_in(file, RecordKind::coincidences).ticks();
    }
    CHECK(same_bytes(all, expected));
    CHECK(ticks == times.ticks());
    const auto run = nlohmann::json::parse(read_file(directory / "parts" / "run.json"));
    CHECK(daemon::coverage_of_run(run).intervals == Intervals(times));
    CHECK(coverage_in(directory / "parts", RecordKind::coincidences).intervals == Intervals(times));
}

TEST_CASE("resort: the ledger is that of the singles that were read", "[resort][coverage]") {
    const TemporaryDirectory directory;
    std::mt19937_64 random(8);
    const Singles singles = difficult("dense", 40, random, 3000);
    const TickRange times{0, singles.back().time + 100};
    const std::uint64_t middle = times.end / 2;
    daemon::Ledger ledger;
    ledger.datagrams.received = ledger.datagrams.accepted = 30;
    ledger.datagrams.frames = singles.size() + 2;
    ledger.frames.received = ledger.frames.accepted = singles.size();
    ledger.saved_singles.found = ledger.saved_singles.written = singles.size();
    ledger.tags.received = ledger.tags.accepted = ledger.tags.ordered = 2;
    ledger.tags.found = ledger.tags.written = 2;
    const std::filesystem::path run = directory / "run";
    write_covered_run(run, singles, times, {{"ledger", daemon::to_json(ledger)}});
    const daemon::Coverage whole = covered_by_run(run, times, resort_scanner().tick_ps);
    write_covered(run / "tags.plm", RecordKind::tags,
                  std::vector{tag(10, 1, gpu::TagKind::gate, 1), tag(middle, 1, gpu::TagKind::gate, 0)},
                  whole);
    const auto ledger_of = [&](const std::filesystem::path& input) {
        auto options = options_for(directory / "new", {input});
        options.force = true;
        REQUIRE(quietly_resort(options) == petlm::ok);
        const Outcome outcome = run_petlm("verify" + quoted(options.output));
        INFO(outcome.out);
        CHECK(outcome.status == 0);
        return nlohmann::json::parse(read_file(options.output / "run.json"))["ledger"];
    };
    const nlohmann::json of_whole = ledger_of(run);
    CHECK(of_whole["closed"] == true);
    CHECK(of_whole["datagrams"]["received"] == 30);

    // Some of the singles: a part of a split run, and the singles of a gate.
    std::filesystem::remove(run / "singles.plm");
    write_covered(run / "singles-0001.plm", RecordKind::singles, between(singles, 0, middle),
                  daemon::part_of(whole, TickRange{0, middle}), {{"part", 1}});
    write_covered(run / "singles-0002.plm", RecordKind::singles, between(singles, middle, times.end),
                  daemon::part_of(whole, TickRange{middle, times.end}), {{"part", 2}});
    CHECK(ledger_of(run) == of_whole);
    const auto gated = directory / "run" / "gated.plm";
    REQUIRE(run_petlm("cut --singles --gate 1" + quoted(run) + "--output" + quoted(gated)).status == 0);
    for (const auto& [input, tags] :
         {std::pair{run / "singles-0001.plm", 1}, {run / "singles-0002.plm", 1}, {gated, 1}}) {
        INFO(input);
        const nlohmann::json of_part = ledger_of(input);
        CHECK_FALSE(of_part.contains("datagrams"));
        CHECK(of_part["tags"]["written"] == tags);
        CHECK(of_part["singles"]["decided"] < singles.size());
        CHECK_FALSE(of_part.value("closed", false));
    }
}

TEST_CASE("resort: a run of several hosts begins with their common time, in one process and in parts",
          "[resort][coverage]") {
    const TemporaryDirectory directory;
    std::mt19937_64 random(9);
    const Singles singles = difficult("dense", 40, random, 3000);
    const std::uint64_t end = singles.back().time + 100;
    const std::uint64_t later = singles.front().time + 30;
    std::vector<std::filesystem::path> runs;
    for (const std::uint64_t host : {0U, 1U}) {
        Singles of_host;
        std::copy_if(singles.begin(), singles.end(), std::back_inserter(of_host), [&](const gpu::Single& s) {
            return s.crystal % 2 == host && (host == 0 || s.time >= later);
        });
        runs.push_back(directory / ("host-" + std::to_string(host)));
        write_covered_run(runs.back(), of_host, TickRange{host == 0 ? later - 30 : later, end});
    }
    const auto check = [&](const std::filesystem::path& made) {
        const auto run = nlohmann::json::parse(read_file(made / "run.json"));
        const daemon::Coverage coverage = daemon::coverage_of_run(run);
        CHECK(coverage.intervals == Intervals(TickRange{later, end}));
        REQUIRE(coverage.anchor);
        CHECK(coverage.anchor->ticks == later);
        CHECK(coverage.since_reference_s(coverage.span().start) == 0);
        CHECK(run["start_utc"] == daemon::utc_text(coverage.anchor->utc));
        CHECK(run["run_id"] == "host-1");
        for (const RecordKind kind : {RecordKind::coincidences, RecordKind::seconds}) {
            for (const auto& file : petlm::record_files(made, kind)) {
                CHECK(daemon::ListModeReader(file).description()["run_id"] == "host-1");
                const daemon::Coverage of_file = coverage_in(file, kind);
                CHECK(of_file.anchor == coverage.anchor);
                CHECK(of_file.origin.runs == std::vector<daemon::OriginRun>{{"host-1", made}});
            }
        }
    };
    auto options = options_for(directory / "one", runs);
    REQUIRE(quietly_resort(options) == petlm::ok);
    check(options.output);
    options.output = directory / "parts";
    options.part = petlm::Share{1, 1};
    REQUIRE(quietly_resort(options) == petlm::ok);
    options.part.reset();
    options.join = true;
    REQUIRE(quietly_resort(options) == petlm::ok);
    check(options.output);
}

TEST_CASE("resort: up to the end of time", "[resort][coverage]") {
    std::mt19937_64 random(5);
    for (const char* mode : {"single", "every"}) {
        for (const std::uint64_t before_end : {0U, 1U, 30U, 800U, 5000U}) {
            for (const std::string kind : {"dense", "bursts", "sparse"}) {
                INFO(mode << ", " << before_end << " before the end, " << kind);
                Singles singles = difficult(kind, 40, random, 900);
                const std::uint64_t shift = UINT64_MAX - before_end - singles.back().time;
                for (gpu::Single& s : singles)
                    s.time += shift;
                const TemporaryDirectory directory;
                nlohmann::json coincidence = with_window();
                coincidence["window_mode"] = mode;
                write_singles_run(directory / "run", singles, coincidence, singles.front().time,
                                  before_end < 2 ? UINT64_MAX : singles.back().time + 2);
                auto options = options_for(directory / "new", {directory / "run"});
                options.shard_singles = 40;
                REQUIRE(quietly_resort(options) == petlm::ok);
                gpu::CoincidenceRules wanted = rules();
                wanted.mode =
                    std::string(mode) == "single" ? gpu::WindowMode::single : gpu::WindowMode::every;
                const gpu::SliceResult expected = found_at_once(singles, wanted);
                CHECK(same_bytes(read_coincidences(directory / "new" / "coincidences.plm"),
                                 expected.coincidences));
                CHECK(sum_over_seconds(directory / "new", "decided") == expected.counts.decided);
                CHECK(sum_over_seconds(directory / "new", "prompts") == expected.counts.prompts);
            }
        }
    }
}

TEST_CASE("resort: seconds at the end of time hold what lies in them", "[resort][coverage]") {
    // A second ends a few ticks before the end of time, within window and delay of it.
    const std::uint64_t boundary = UINT64_MAX / second * second;
    Singles singles;
    for (std::uint64_t t = boundary - 1000; t < boundary + 500; t += 10)
        singles.push_back({t, static_cast<std::uint32_t>(t % 960), 511});
    const TemporaryDirectory directory;
    write_singles_run(directory / "run", singles, with_window(), boundary - 1000, boundary + 500);
    REQUIRE(quietly_resort(options_for(directory / "new", {directory / "run"})) == petlm::ok);
    CHECK(seconds_of(directory / "new") ==
          std::vector<TickRange>{{boundary - 1000, boundary}, {boundary, boundary + 500}});
    daemon::SecondsReader reader(directory / "new" / "seconds.plm");
    for (const std::uint64_t expected : {100U, 50U}) {
        REQUIRE(reader.next());
        CHECK(reader.values(*reader.find("decided")).whole() == expected);
    }
}

TEST_CASE("resort: only times that all hosts cover are searched, whatever holes they have",
          "[resort][coverage]") {
    std::mt19937_64 random(6);
    for (const std::string kind : {"dense", "bursts", "chained"}) {
        const TemporaryDirectory directory;
        const Singles all = difficult(kind, 40, random, 2000);
        const std::uint64_t end = all.back().time + 1;
        std::array<Intervals, 2> times;
        std::array<Singles, 2> of_host;
        for (std::size_t host = 0; host < 2; ++host) {
            std::vector<TickRange> ranges;
            for (std::uint64_t at = random() % 50; at < end; at += random() % (end / 10)) {
                const std::uint64_t to = at + 1 + random() % (end / 5);
                ranges.push_back({at, std::min(to, end)});
                at = to;
            }
            times[host] = Intervals(std::move(ranges));
            for (const gpu::Single& s : all)
                if (s.crystal % 2 == host && times[host].contains(s.time)) of_host[host].push_back(s);
            write_covered_run(directory / std::to_string(host), of_host[host], times[host]);
        }
        for (const bool partial : {false, true}) {
            INFO(kind << (partial ? ", partial" : ""));
            auto options =
                options_for(directory / (partial ? "any" : "common"), {directory / "0", directory / "1"});
            options.input.partial = partial;
            REQUIRE(quietly_resort(options) == petlm::ok);
            const Intervals searched = partial ? times[0].unite(times[1]) : times[0].intersect(times[1]);
            Singles taken;
            for (const Singles& some : of_host)
                std::copy_if(some.begin(), some.end(), std::back_inserter(taken),
                             [&](const gpu::Single& s) { return searched.contains(s.time); });
            sort_singles(taken);
            CHECK(same_bytes(read_coincidences(options.output / "coincidences.plm"),
                             found_at_once(taken, rules()).coincidences));
            CHECK(coverage_in(options.output, RecordKind::coincidences).intervals == searched);
            CHECK(sum_over_seconds(options.output, "decided") == taken.size());
            const auto run = nlohmann::json::parse(read_file(options.output / "run.json"));
            std::uint64_t missing = 0;
            for (const auto& m : run["resorted"]["missing"])
                missing += m["to_ticks"].get<std::uint64_t>() - m["from_ticks"].get<std::uint64_t>();
            CHECK(missing == searched.without(times[0]).ticks() + searched.without(times[1]).ticks());
        }
    }
}

TEST_CASE("the seconds of any times: at multiples, nowhere else, and one in a long silence",
          "[resort][coverage]") {
    const TemporaryDirectory directory;
    // The silence lies within a block, or between blocks.
    const std::uint32_t block_bytes = GENERATE(128U, 4096U);
    const Singles singles = {{50, 1, 511}, {60, 1, 511},      {70, 1, 511},
                             {80, 1, 511}, {900'020, 1, 511}, {900'990, 2, 511}};
    write_singles_run(directory / "run", singles, with_window(), 0, 1'000'000, nlohmann::json::object(),
                      block_bytes);
    std::vector<petlm::SinglesFiles> runs;
    runs.emplace_back(directory / "run");
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        const Intervals times = some_intervals(random, {880'000, 900'000}, 4, 8999);
        std::uint64_t sum = 0;
        for (const TickRange& found : petlm::second_ranges(times, runs, 1000)) {
            sum += found.ticks();
            CHECK(found.ticks() > 0);
            CHECK(times.ticks_in(found) == found.ticks());
            CHECK(found.start / 1000 == (found.end - 1) / 1000);
        }
        CHECK(sum == times.ticks());
    }
    std::size_t longer = 0;
    const auto all = petlm::second_ranges(TickRange{0, 1'000'000}, runs, 1000);
    for (const TickRange& found : all)
        longer += found.ticks() > 1000 ? 1 : 0;
    CHECK(longer == 1);
    CHECK(all.size() < 500);
    CHECK(petlm::second_ranges(TickRange{UINT64_MAX - 5, UINT64_MAX}, runs, 1000).size() == 1);
}
