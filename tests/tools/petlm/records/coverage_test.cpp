// What petlm cut, gate, merge, recover, info and verify say about the times that files cover.
#include <algorithm>
#include <fstream>
#include <random>

#include "tests/daemon/seconds/support.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/covered.hpp"
#include "tests/tools/petlm/tags.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/tags.hpp"

using namespace petacq;
using namespace petacq::test;
using daemon::Intervals;
using daemon::RecordKind;
using gpu::TickRange;

namespace {

constexpr double ms_ps = 1e9;  ///< a tick of a millisecond
constexpr std::uint64_t start = 5000;
constexpr std::uint64_t stop = 9000;

gpu::RecordVector<gpu::Coincidence> pairs_from(std::uint64_t from, std::uint64_t to) {
    gpu::RecordVector<gpu::Coincidence> pairs;
    for (std::uint64_t t = from; t < to; t += 10) {
        gpu::Coincidence pair;
        pair.time = t;
        pair.crystal_b = 5;
        pairs.push_back(pair);
    }
    return pairs;
}

/// A run of four seconds, with its coincidences and seconds.
struct CoveredRun {
    CoveredRun() : CoveredRun("run", {start, stop}) {}
    CoveredRun(const char* name, TickRange times) : path(directory / name) {
        add(path, times);
        write_seconds(path / "seconds.plm", 4);
    }
    static void add(const std::filesystem::path& run, TickRange times) {
        std::filesystem::create_directories(run);
        const daemon::Coverage whole = covered_by_run(run, times, ms_ps);
        write_covered(run / "coincidences.plm", RecordKind::coincidences, pairs_from(times.start, times.end),
                      whole);
        nlohmann::json document = {{"run_id", run.filename().string()}, {"state", "complete"}};
        daemon::state_in(document, whole);
        write_file(run / "run.json", document.dump());
    }
    [[nodiscard]] std::filesystem::path file() const { return path / "coincidences.plm"; }

    TemporaryDirectory directory;
    std::filesystem::path path;
};

Intervals covered(const std::filesystem::path& target, RecordKind kind = RecordKind::coincidences) {
    return coverage_in(target, kind).intervals.value_or(Intervals());
}

std::string ticks(std::uint64_t from, std::uint64_t to) {
    return " --from-ticks " + std::to_string(from) + " --to-ticks " + std::to_string(to) + " ";
}

/// Replaces the coverage in a file of coincidences, and the rest stays.
void restate(const std::filesystem::path& file, const daemon::Coverage& coverage) {
    write_covered(file, RecordKind::coincidences, read_coincidences(file), coverage);
}

}  // namespace

TEST_CASE("petlm cut of an interval that the input does not cover says which it covers",
          "[petlm][coverage]") {
    const CoveredRun run;
    const auto out = run.directory / "cut.plm";
    const auto cut = [&](const std::string& options) {
        return run_petlm("cut --force" + quoted(run.path) + "-o" + quoted(out) + options + " 2>&1");
    };
    const Outcome outside = cut(ticks(0, 2000));
    CHECK(outside.status == 0);
    CHECK_THAT(outside.out,
               contains("ticks 0 to 2000 lie outside") && contains("ticks 5000 to 9000, 5 to 9 s"));
    // The answer has the unit of the question.
    const Outcome outside_s = cut(" --from-s 1 --to-s 2");
    CHECK_THAT(outside_s.out,
               contains("seconds 1 to 2 lie outside") && contains("seconds 5 to 9\n") && !contains("ticks"));
    CHECK_THAT(cut(" --from-s 20").out, contains("seconds from 20 on lie outside"));
    CHECK(covered(out).empty());
    CHECK(coverage_in(out, RecordKind::coincidences).intervals);
    CHECK(read_coincidences(out).empty());
    // It does not matter whether there are records.
    CHECK_THAT(cut(ticks(start + 1, start + 3)).out, !contains("outside"));
    CHECK(covered(out) == Intervals(TickRange{start + 1, start + 3}));
    CHECK_THAT(cut(ticks(start, start)).out, !contains("outside"));
    write_tags(run.path / "tags.plm", {tag(start + 100, 2, gpu::TagKind::gate, 1)},
               {{"run_id", "run"}, {"tick_ps", ms_ps}});
    CHECK_THAT(cut("--gate 2" + ticks(0, start + 50)).out, contains("the gate of channel 2 is not open"));
    CHECK_THAT(cut("--gate 2").out, !contains("not open"));
    CHECK(covered(out) == Intervals(TickRange{start + 100, stop}));
}

TEST_CASE("petlm cut of a file that covers no time says so, and where it comes from", "[petlm][coverage]") {
    const CoveredRun run;
    const auto empty = run.directory / "empty.plm";
    REQUIRE(run_petlm("cut" + quoted(run.path) + "-o" + quoted(empty) + ticks(0, 10)).status == 0);
    const Outcome outcome = run_petlm("cut" + quoted(empty) + "-o" + quoted(run.directory / "again.plm") +
                                      ticks(start, stop) + "2>&1");
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.out, contains("empty.plm: covers no time") &&
                                contains("of the run \"run\" in " + run.path.string()) &&
                                !contains("ticks 0 to 0"));
}

TEST_CASE("petlm gate and cut --gate say that the run of a file was not found, and where",
          "[petlm][coverage]") {
    const CoveredRun run;
    const auto away = run.directory / "a/b/cut.plm";
    std::filesystem::create_directories(away.parent_path());
    REQUIRE(run_petlm("cut" + quoted(run.path) + "-o" + quoted(away) + ticks(start, stop)).status == 0);
    std::filesystem::remove_all(run.path);
    const auto check = [&](const std::string& command) {
        const Outcome outcome =
            run_petlm(command + quoted(away) + "-o" + quoted(run.directory / "out") + "2>&1");
        CHECK(outcome.status == 1);
        for (const auto& place : {run.directory / "a/b", run.directory / "a", run.path})
            CHECK_THAT(outcome.out,
                       contains("the run \"run\" was found neither in ") && contains(place.string()));
    };
    check("gate --channel 1 --bins 2");
    check("cut --gate 1");
    // The tags of another run are not those of this one.
    CoveredRun::add(run.directory / "a/b", {start, stop});
    write_tags(run.directory / "a/b/tags.plm",
               {tag(start, 1, gpu::TagKind::gate, 1), tag(start + 100, 1, gpu::TagKind::gate, 0)},
               {{"run_id", "b"}, {"tick_ps", ms_ps}});
    check("cut --gate 1");
}

TEST_CASE("petlm cut --seconds covers the seconds that it keeps", "[petlm][coverage]") {
    const CoveredRun run;
    const auto out = run.directory / "cut.plm";
    REQUIRE(run_petlm("cut --seconds" + quoted(run.path) + "-o" + quoted(out) + ticks(5500, 8400)).status ==
            0);
    CHECK(covered(out, RecordKind::seconds) == Intervals(TickRange{6000, 8000}));
    REQUIRE(run_petlm("verify" + quoted(out)).status == 0);
}

TEST_CASE("petlm merge refuses what would count twice, and what is of other rules", "[petlm][coverage]") {
    const CoveredRun run;
    const auto a = run.directory / "a.plm";
    const auto b = run.directory / "b.plm";
    const auto out = run.directory / "out.plm";
    const auto cut = [&](const std::filesystem::path& to, std::uint64_t from, std::uint64_t end) {
        REQUIRE(run_petlm("cut --force" + quoted(run.path) + "-o" + quoted(to) + ticks(from, end)).status ==
                0);
    };
    const auto merge = [&] {
        return run_petlm("merge --force" + quoted(a) + quoted(b) + "-o" + quoted(out) + " 2>&1");
    };
    cut(a, 5000, 6001);
    cut(b, 6000, 7000);
    Outcome merged = merge();
    CHECK(merged.status == 64);
    CHECK_THAT(merged.out, contains("b.plm") && contains("they overlap: both cover the ticks 6000 to 6001"));
    CHECK_FALSE(std::filesystem::exists(out));
    cut(b, 6001, 7000);
    CHECK(merge().status == 0);
    CHECK(covered(out) == Intervals(TickRange{5000, 7000}));

    daemon::Coverage narrow = coverage_in(b, RecordKind::coincidences);
    narrow.rules.energy = config::Energy{};
    restate(b, narrow);
    merged = merge();
    CHECK(merged.status == 64);
    CHECK_THAT(merged.out, contains("different rules"));

    // Singles of two hosts may be of the same time, even if their runs have one id and one directory; those
    // of one host may not.
    const std::vector<gpu::Single> singles = {{5100, 1, 511}, {5200, 2, 511}};
    const std::vector<gpu::Single> others = {{5100, 7, 511}, {5150, 8, 511}, {5200, 9, 511}};
    daemon::Coverage host = covered_by_run(run.directory / "host", TickRange{start, stop}, ms_ps);
    write_covered(a, RecordKind::singles, singles, host);
    write_covered(b, RecordKind::singles, std::vector{others[0], others[1], singles[1]}, host);
    merged = merge();
    CHECK(merged.status == 64);
    CHECK_THAT(merged.out,
               contains("b.plm cannot be merged with") && contains("a.plm: they overlap: both have the "
                                                                   "same record of tick 5200"));
    write_covered(b, RecordKind::singles, others, host);
    CHECK(merge().status == 0);
    CHECK(covered(out, RecordKind::singles) == Intervals(TickRange{start, stop}));
    host.origin.runs.front().run_id = "other";
    write_covered(b, RecordKind::singles, others, host);
    CHECK(merge().status == 0);
    CHECK(coverage_in(out, RecordKind::singles).origin.runs.size() == 2);
}

TEST_CASE("the parts of a run that was split cover it together, each its share", "[petlm][coverage]") {
    const CoveredRun run;
    std::filesystem::remove(run.file());
    const daemon::Coverage whole = covered_by_run(run.path, TickRange{start - 3, stop}, ms_ps);
    nlohmann::json description = {{"run_id", "run"}, {"tick_ps", ms_ps}};
    daemon::Coverage open = whole;
    open.intervals.reset();
    description["coverage"] = daemon::to_json(open);
    daemon::ListModeOptions options;
    options.block_bytes = 512;
    options.sync_interval_ms = 3'600'000;
    options.split.ticks = 1000;
    options.closing = [&](const daemon::PartTimes& times) -> nlohmann::json {
        const TickRange share{times.from.value_or(0), times.to.value_or(UINT64_MAX)};
        return {{"coverage", daemon::to_json(daemon::part_of(whole, share))}};
    };
    const auto pairs = pairs_from(start, stop);
    daemon::ListModeWriter writer(run.file(), options, description);
    writer.append(gpu::RecordVector<gpu::Coincidence>(pairs));
    REQUIRE(writer.finish().written == pairs.size());
    REQUIRE(covered(run.path) == whole.intervals);
    const auto files = petlm::record_files(run.path, RecordKind::coincidences);
    REQUIRE(files.size() > 3);
    std::string all;
    std::uint64_t sum = 0;
    for (const auto& file : files) {
        sum += covered(file).ticks();
        all = quoted(file) + all;
    }
    CHECK(sum == whole.ticks());
    const auto out = run.directory / "all.plm";
    REQUIRE(run_petlm("merge" + all + "-o" + quoted(out)).status == 0);
    CHECK(covered(out) == whole.intervals);
    CHECK(same(read_coincidences(out), pairs));

    // After a crash the last part has no closing description: it covers its whole blocks.
    std::filesystem::resize_file(files.back(), std::filesystem::file_size(files.back()) - 600);
    REQUIRE(run_petlm("recover" + quoted(run.path)).status == 0);
    const auto recovered = run.directory / "run.recovered";
    const auto kept = read_coincidences(recovered / files.back().filename());
    REQUIRE(!kept.empty());
    CHECK(covered(recovered) == Intervals(TickRange{start - 3, kept.back().time + 1}));
    CHECK(covered(recovered / files.back().filename()) ==
          Intervals(TickRange{kept.front().time, kept.back().time + 1}));
}

namespace {

/// Of an interrupted run: the start of the run is known, not what it covers.
daemon::Coverage interrupted(const CoveredRun& run, bool has_start) {
    daemon::Coverage coverage = covered_by_run(run.path, TickRange{start, stop}, ms_ps);
    coverage.intervals.reset();
    if (!has_start) coverage.anchor.reset();
    return coverage;
}

}  // namespace

TEST_CASE("petlm recover: a run that a crash ended covers its whole blocks", "[petlm][recover][coverage]") {
    const CoveredRun run;
    const bool has_start = GENERATE(true, false);
    // The header is older than the data, so that run.json alone has their start.
    write_covered(run.file(), RecordKind::coincidences, pairs_from(start + 20, stop),
                  interrupted(run, false));
    const std::string bytes = read_file(run.file());
    write_file(run.file(), bytes.substr(0, bytes.size() / 2));
    nlohmann::json document = {{"run_id", "run"}, {"state", "running"}};
    document["coverage"] = daemon::to_json(interrupted(run, has_start));
    write_file(run.path / "run.json", document.dump());
    REQUIRE(run_petlm("recover" + quoted(run.path)).status == 0);
    const auto recovered = run.directory / "run.recovered";
    const auto kept = read_coincidences(recovered / "coincidences.plm");
    REQUIRE(!kept.empty());
    const std::uint64_t end = kept.back().time + 1;
    const Intervals expected = TickRange{has_start ? start : start + 20, end};
    CHECK(covered(recovered / "coincidences.plm") == expected);
    CHECK(coverage_in(recovered / "coincidences.plm", RecordKind::coincidences).loss.seconds_complete);
    const auto saved = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(daemon::coverage_of_run(saved).intervals == expected);
    CHECK(saved["start_ticks"] == expected.span().start);
    CHECK(saved["stop_ticks"] == end);
    CHECK(saved.contains("stop_utc") == has_start);
    CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
}

TEST_CASE("petlm recover: a run whose files were closed before the crash covers what they say",
          "[petlm][recover][coverage]") {
    const CoveredRun run;
    nlohmann::json document = {{"run_id", "run"}, {"state", "running"}};
    document["coverage"] = daemon::to_json(interrupted(run, true));
    write_file(run.path / "run.json", document.dump());
    REQUIRE(run_petlm("recover" + quoted(run.path)).status == 0);
    const auto recovered = run.directory / "run.recovered";
    const auto saved = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(daemon::coverage_of_run(saved).intervals == Intervals(TickRange{start, stop}));
    CHECK(covered(recovered / "coincidences.plm") == Intervals(TickRange{start, stop}));
    CHECK(saved["stop_ticks"] == stop);
    CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
}

TEST_CASE("petlm recover: a file that was closed tells where its run begins", "[petlm][recover][coverage]") {
    const CoveredRun run;
    std::filesystem::remove(run.path / "seconds.plm");
    const std::uint64_t begin = start - 3;
    const auto closed = covered_by_run(run.path, TickRange{begin, stop}, ms_ps);
    const daemon::Coverage open = interrupted(run, false);
    std::uint64_t end = stop;
    SECTION("run.json knows no time") {
        write_covered(run.file(), RecordKind::coincidences, pairs_from(start + 20, stop), closed);
    }
    SECTION("another file of it was cut off") {
        write_covered(run.path / "singles.plm", RecordKind::singles,
                      std::vector<gpu::Single>{{start + 5, 1, 511}, {stop - 1, 2, 511}}, closed);
        write_covered(run.file(), RecordKind::coincidences, pairs_from(start + 20, stop), open);
        std::filesystem::resize_file(run.file(), std::filesystem::file_size(run.file()) / 2);
        end = 0;
    }
    const nlohmann::json document = {
        {"run_id", "run"}, {"state", "running"}, {"coverage", daemon::to_json(open)}};
    write_file(run.path / "run.json", document.dump());
    REQUIRE(run_petlm("recover" + quoted(run.path)).status == 0);
    const auto recovered = run.directory / "run.recovered";
    if (end == 0) end = read_coincidences(recovered / "coincidences.plm").back().time + 1;
    const auto saved = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(daemon::coverage_of_run(saved).intervals == Intervals(TickRange{begin, end}));
    CHECK(covered(recovered / "coincidences.plm") == Intervals(TickRange{begin, end}));
    CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
}

TEST_CASE("petlm recover: lost seconds are told in every file, also in sound ones",
          "[petlm][recover][coverage]") {
    const CoveredRun run;
    const auto seconds = run.path / "seconds.plm";
    std::filesystem::resize_file(seconds, daemon::ListModeReader(seconds).index()[2].offset + 10);
    REQUIRE(run_petlm("recover" + quoted(run.path)).status == 0);
    const auto recovered = run.directory / "run.recovered";
    for (const auto& target : {recovered, recovered / "coincidences.plm"}) {
        const daemon::Coverage coverage = coverage_in(target, RecordKind::coincidences);
        CHECK(coverage.intervals == Intervals(TickRange{start, stop}));
        CHECK_FALSE(coverage.loss.seconds_complete);
    }
    const Intervals kept = TickRange{start, start + 2000};
    CHECK(petlm::recorded_times(recovered) == kept);
    CHECK(covered(recovered / "seconds.plm", RecordKind::seconds) == kept);
}

TEST_CASE("petlm recover: what a damaged stretch has cost is not covered", "[petlm][recover][coverage]") {
    const CoveredRun run;
    daemon::ListModeReader reader(run.file());
    std::vector<daemon::BlockHeader> blocks;
    std::vector<std::uint64_t> offsets;
    while (reader.next()) {
        blocks.push_back(reader.block());
        offsets.push_back(reader.block_offset());
    }
    const std::size_t lost = GENERATE(0U, 5U);
    std::string bytes = read_file(run.file());
    bytes[offsets[lost] + 100] = static_cast<char>(bytes[offsets[lost] + 100] ^ 1);
    write_file(run.file(), bytes);
    CHECK(run_petlm("recover" + quoted(run.file())).status == 1);
    const auto recovered = run.path / "coincidences.recovered.plm";
    const TickRange after{blocks[lost + 1].first_time, stop};
    const TickRange before{start, lost == 0 ? start : blocks[lost - 1].last_time + 1};
    CHECK(covered(recovered) == Intervals(std::vector{before, after}));
    // What was recovered can be recovered again, and stays what it is.
    const auto again = run.directory / "again.plm";
    REQUIRE(run_petlm("recover" + quoted(recovered) + "-o" + quoted(again)).status == 0);
    CHECK(covered(again) == covered(recovered));
    CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
}

TEST_CASE("petlm verify finds records outside of what the file covers", "[petlm][coverage]") {
    const CoveredRun run;
    std::filesystem::remove(run.path / "seconds.plm");
    CHECK(run_petlm("verify" + quoted(run.path)).status == 0);
    daemon::Coverage less = coverage_in(run.file(), RecordKind::coincidences);
    less.intervals = Intervals(std::vector{TickRange{start, 6000}, TickRange{6011, stop}});
    restate(run.file(), less);
    const Outcome outcome = run_petlm("verify" + quoted(run.path));
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("record 100 (block 7) is of a time that the file does not cover") &&
                                contains("record 101 ") && !contains("record 102 "));
    CHECK_THAT(outcome.out, contains("run.json: its coverage has other intervals than its coincidences"));
}

TEST_CASE("petlm info says what a file covers", "[petlm][coverage]") {
    const CoveredRun run;
    const auto out = run.directory / "cut.plm";
    REQUIRE(run_petlm("cut" + quoted(run.path) + "-o" + quoted(out) + ticks(7000, 8500)).status == 0);
    const std::string text = run_petlm("info" + quoted(out)).out;
    CHECK_THAT(text, contains("covers       1.5 s") &&
                         contains("from         7000 to 8500 ticks, 7 to 8.5 s") &&
                         contains("first time 2026-11-20T18:45:02.000Z") &&
                         contains("run start    5000 ticks, 2026-11-20T18:45:00.000Z") &&
                         contains("of run       run " + run.path.string()));
    const auto document = nlohmann::json::parse(run_petlm("info --json" + quoted(out)).out);
    CHECK(document["coverage"]["intervals"] == nlohmann::json{{7000, 8500}});

    // A file of version 1.0 without a run says nothing, and that is said.
    write_plm(run.directory / "old.plm", pairs(3), {{"tick_ps", 20}});
    CHECK_THAT(run_petlm("info" + quoted(run.directory / "old.plm")).out,
               contains("not known    when its records were taken"));
}

TEST_CASE("the times of a bin are those that the bin takes, tick by tick", "[petlm][gate][coverage]") {
    std::mt19937_64 random(9);
    for (int round = 0; round < 40; ++round) {
        std::vector<gpu::Tag> tags;
        std::uint64_t at = 1000;
        for (std::uint32_t i = 1; i < 12; ++i)
            tags.push_back(tag(at += random() % 60, 1, gpu::TagKind::trigger, i));
        const petlm::Cycles cycles(tags, {});
        const auto bins = static_cast<std::uint32_t>(2 + random() % 63);
        for (std::uint32_t bin = 0; bin < bins; ++bin) {
            const Intervals times = cycles.times_of(bin, bins);
            for (std::uint64_t t = 990; t < at + 10; ++t)
                if (times.contains(t) != (cycles.bin_of(t, bins) == bin))
                    FAIL("tick " << t << ", bin " << bin);
        }
    }
    // A cycle that is almost as long as time.
    const petlm::Cycles cycles(
        std::vector{tag(5, 1, gpu::TagKind::trigger, 1), tag(UINT64_MAX - 3, 1, gpu::TagKind::trigger, 2)},
        {});
    for (std::uint32_t bin = 0; bin < 64; ++bin) {
        const TickRange times = cycles.times_of(bin, 64).span();
        CHECK(cycles.bin_of(times.start, 64) == bin);
        CHECK(cycles.bin_of(times.end - 1, 64) == bin);
    }
}

TEST_CASE("petlm gate of two runs that were merged has no cycle between them", "[petlm][gate][coverage]") {
    const CoveredRun run("first", {5000, 6000});
    const auto second = run.directory / "second";
    CoveredRun::add(second, {6500, 7500});
    const auto write = [&](const std::filesystem::path& of, std::uint64_t from, std::uint32_t number) {
        std::vector<gpu::Tag> tags;
        for (std::uint32_t i = 0; i < 3; ++i)
            tags.push_back(tag(from + 300 * i, 1, gpu::TagKind::trigger, number + i));
        write_covered(of / "tags.plm", RecordKind::tags, tags,
                      covered_by_run(of, TickRange{from - 100, from + 900}, ms_ps));
    };
    write(run.path, 5100, 1);
    write(second, 6600, 4);
    const auto merged = run.directory / "merged.plm";
    REQUIRE(run_petlm("merge" + quoted(run.path) + quoted(second) + "-o" + quoted(merged)).status == 0);
    const auto out = run.directory / "phases";
    const Outcome gated = run_petlm("gate --channel 1 --bins 2" + quoted(merged) + "-o" + quoted(out));
    CAPTURE(gated.out);
    REQUIRE(gated.status == 0);
    CHECK_THAT(gated.out, contains("4 cycles of 0.3 s"));
    CHECK(covered(out / "phase-01.plm") ==
          Intervals(std::vector{TickRange{5100, 5250}, TickRange{5400, 5550}, TickRange{6600, 6750},
                                TickRange{6900, 7050}}));
    // The phases are elsewhere, and their runs are still found.
    const auto cut = run.directory / "elsewhere" / "cut.plm";
    std::filesystem::create_directories(cut.parent_path());
    REQUIRE(run_petlm("cut" + quoted(out / "phase-01.plm") + "-o" + quoted(cut) + ticks(5200, 6700)).status ==
            0);
    CHECK(run_petlm("gate --channel 1 --bins 4" + quoted(cut) + "-o" + quoted(run.directory / "again"))
              .status == 0);
    CHECK(covered(run.directory / "again" / "phase-01.plm") ==
          Intervals(std::vector{TickRange{5400, 5475}, TickRange{6600, 6675}}));
}
