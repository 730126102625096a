// Runs from start to end, turn by turn: in every order of start, stop, watermark and first frame.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/acquisition/acquisition_stand.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_cores.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint64_t far_ahead = 1'000'000 * ms;

/// Lets host time pass for work that is not done in every turn.
template <class Condition>
bool turns_until(AcquisitionStand& stand, Condition condition) {
    for (int milliseconds = 0; milliseconds <= 110; ++milliseconds) {
        stand.pass(1);
        if (condition()) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a run without a requested start starts at once and ends past everything received") {
    AcquisitionStand stand;
    const Acquisition& acquisition = stand.make();
    CHECK_FALSE(acquisition.snapshot()->run);
    stand.begin();
    CHECK(stand.started == 1);
    CHECK(acquisition.snapshot()->run);
    stand.stream(1000 * ms, 1020 * ms);
    stand.end();
    CHECK(stand.finished.empty());  // the source might send more of that time
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    const RunEnd& end = stand.finished[0].end;
    CHECK(end.reason == "stopped by operator");
    CHECK_FALSE(end.failed);
    CHECK(end.covered.start == 1000 * ms - offset);
    CHECK(end.covered.end == 1020 * ms + offset + 1);
    CHECK(end.covered.ticks() == 20 * ms + 2 * offset + 1);
    CHECK(end.ledger.frames.received == 2000);
    CHECK(stand.pool.free_count() == stand.pool.count());
    CHECK_FALSE(acquisition.snapshot()->run);
    stand.check_closed();
}

TEST_CASE("a run that is stopped before the first frame is empty") {
    AcquisitionStand stand;
    stand.make();
    stand.begin();
    stand.end();
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.covered.end == stand.finished[0].end.covered.start);
    CHECK(stand.finished[0].end.covered.ticks() == 0);
    stand.check_closed();
}

TEST_CASE("a run waits for the watermark to reach its start") {
    AcquisitionStand stand;
    stand.make();
    stand.begin({1010 * ms, {}, {}});
    stand.stream(1000 * ms, 1019 * ms);
    CHECK(stand.started == 0);
    stand.stream(1019 * ms, 1025 * ms);
    CHECK(stand.started == 1);
    // A source has progressed to the first frame of its latest datagram.
    CHECK(stand.script.slices.back().watermark == 1024 * ms - disorder - offset);
    stand.end();
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.covered.start == 1010 * ms);
    stand.check_closed();
}

TEST_CASE("a run that starts before detector time is known covers only times of which it has all frames") {
    AcquisitionStand stand;
    stand.tracker.expected = {1, 2};
    stand.make();
    // No run has the frames that board 1 sends before the start. The first datagram of board 2 overlaps with
    // them in time.
    const std::uint64_t before = GENERATE(0, 1) * ms / 2;
    stand.send(1000 * ms + before, 1);
    stand.begin();
    for (std::uint64_t time = 1000 * ms; time < 1050 * ms; time += ms) {
        stand.send(time + ms / 4, 2);
        stand.send(time + ms + before, 1);
    }
    stand.stop();
    const daemon::RunEnd& end = stand.finished[0].end;
    const std::uint64_t start = 1001 * ms + before + offset + 1;
    CHECK(end.covered.start == start);
    CHECK(end.covered.end == 1051 * ms + before + offset + 1);
    // Hits from before the covered time are in a segment of their own. The run does not have them.
    CHECK(end.taken.start == start);
    CHECK(
        std::ranges::any_of(stand.script.slices, [&](const auto& slice) { return slice.close_at == start; }));
    CHECK(end.ledger.datagrams.accepted == 100);
    // The first datagram of board 1 begins before, and the first one or two of board 2.
    CHECK(end.ledger.singles.decided == 10'000 - (before == 0 ? 200 : 300));
}

TEST_CASE("a run that is stopped before detector time is known has the frames of all boards up to its stop") {
    AcquisitionStand stand;
    stand.tracker.expected = {1, 2, 3};
    stand.tracker.jump_confirmations = 3;
    stand.make();
    for (std::uint16_t board = 1; board <= 3; ++board)
        stand.send(1000 * ms, board);
    stand.begin();
    stand.send(1001 * ms, 1);
    stand.send(1002 * ms, 1);
    stand.end();
    for (std::uint64_t time = 1001 * ms; time < 1030 * ms; time += ms) {
        stand.send(time, 2);
        stand.send(time, 3);
        if (time > 1002 * ms) stand.send(time, 1);
    }
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    const daemon::RunEnd& end = stand.finished[0].end;
    CHECK(end.covered.end == 1003 * ms + offset + 1);
    // Three datagrams of each board begin before the stop, and two of these in the covered time.
    CHECK(end.ledger.singles.decided == 600);
    CHECK(end.ledger.frames.late == 0);
    stand.check_closed();
}

TEST_CASE("a replayed run covers no time before the run that it replays") {
    AcquisitionStand stand;
    stand.make();
    stand.begin({1000 * ms, {}, {}, 1020 * ms});
    stand.stream(1000 * ms, 1050 * ms);
    stand.stop();
    CHECK(stand.finished[0].end.taken.start == 1020 * ms);
    CHECK(stand.finished[0].end.covered.start == 1020 * ms);
    CHECK(stand.finished[0].end.ledger.singles.decided == 3000);
    CHECK(stand.finished[0].end.covered.end == 1050 * ms + offset + 1);
}

TEST_CASE("a run covers its first frames if what was sent before it was of another time") {
    AcquisitionStand stand;
    stand.tracker.expected = {1, 2};
    stand.make();
    stand.send(GENERATE(0, 3'000 * ms, far_ahead), 1);
    stand.begin();
    for (std::uint64_t time = 1000 * ms; time < 1050 * ms; time += ms) {
        stand.send(time + ms / 4, 2);
        stand.send(time, 1);
    }
    stand.stop();
    CHECK(stand.finished[0].end.covered.start == 1000 * ms - offset);
}

TEST_CASE("a run that stops before its data would begin covers no time and has no records") {
    AcquisitionStand stand;
    stand.tracker.expected = {1, 2};
    stand.script.pairs = true;
    stand.make();
    stand.send(1000 * ms, 1);
    const std::uint64_t stop = GENERATE(1000 * ms + ms / 2, 1001 * ms + offset);
    stand.begin({{}, stop, {}});
    for (std::uint64_t time = 1000 * ms; time < 1050 * ms && stand.finished.empty(); time += ms) {
        stand.send(time + ms / 4, 2);
        stand.send(time + ms, 1);
    }
    REQUIRE(stand.finished.size() == 1);
    const daemon::RunEnd& end = stand.finished[0].end;
    CHECK(end.reason == "end of the interval");
    CHECK(end.taken.end == stop);
    CHECK(end.covered.ticks() == 0);
    CHECK(end.ledger.pairs.prompts_found == 0);
    stand.check_closed();
}

TEST_CASE("a run has all of a stream that was sent before it, too, and had ended") {
    AcquisitionStand stand;
    stand.make();
    stand.stream(1000 * ms, 1050 * ms);
    stand.silence();
    stand.begin();
    stand.sequence.clear();
    stand.stream(1000 * ms, 1050 * ms);
    stand.stop();
    CHECK(stand.finished[0].end.covered.start == 1000 * ms - offset);
    CHECK(stand.finished[0].end.ledger.singles.decided == 5000);
}

TEST_CASE("a run that is stopped before the start that was asked for never begins") {
    AcquisitionStand stand;
    stand.make();
    stand.begin({far_ahead, {}, {}});
    stand.stream(1000 * ms, 1015 * ms);
    stand.end();
    CHECK(stand.started == 0);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.never_began);
    CHECK(stand.finished[0].end.reason == "stopped by operator before its start_ticks");
    // Another may have the data.
    stand.begin();
    stand.stream(1015 * ms, 1020 * ms);
    stand.end();
    stand.silence();
    REQUIRE(stand.finished.size() == 2);
    CHECK_FALSE(stand.finished[1].end.never_began);
    CHECK(stand.finished[1].end.covered.end == 1020 * ms + offset + 1);
    CHECK(stand.pool.free_count() == stand.pool.count());
}

TEST_CASE("a run whose interval has passed never begins") {
    AcquisitionStand stand;
    stand.make();
    stand.stream(1000 * ms, 1015 * ms);
    const std::uint64_t passed = 900 * ms;
    SECTION("the start") {
        stand.begin({passed, {}, {}});
    }
    SECTION("the stop") {
        stand.begin({{}, passed, {}});
    }
    CHECK(stand.started == 0);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.never_began);
    INFO(stand.finished[0].end.reason);
    CHECK(stand.finished[0].end.reason.find(std::to_string(passed) + " has passed: expected a time from ") !=
          std::string::npos);
    const auto run = stand.finished[0].run->path();
    REQUIRE(std::filesystem::exists(run));
    stand.finished[0].run->discard();
    CHECK_FALSE(std::filesystem::exists(run));
}

TEST_CASE("a stop while no data arrive ends the run after its timeout") {
    AcquisitionStand stand;
    SECTION("of a run whose source holds the watermark back") {
        stand.options.stop_timeout = std::chrono::milliseconds(0);
        stand.make();
        stand.begin();
        stand.stream(1000 * ms, 1020 * ms);
        stand.end();
        REQUIRE(stand.finished.size() == 1);
        CHECK(stand.finished[0].end.covered.end == 1020 * ms + offset + 1);
    }
    SECTION("of a run whose receiver has stopped") {
        stand.options.stop_timeout = std::chrono::milliseconds(0);
        stand.make();
        stand.begin();
        stand.stream(1000 * ms, 1020 * ms);
        stand.host_ns += static_cast<std::int64_t>(3'600'000 * ms);  // the lane does not follow
        stand.end();
        REQUIRE(stand.finished.size() == 1);
        CHECK(stand.finished[0].end.covered.end == 1020 * ms + offset + 1);
    }
    SECTION("not before") {
        stand.make();
        stand.begin();
        stand.stream(1000 * ms, 1020 * ms);
        stand.end();
        stand.turns(5);
        CHECK(stand.finished.empty());
        return;
    }
    CHECK(stand.finished[0].end.reason == "stopped by operator");
    CHECK_FALSE(stand.finished[0].end.failed);
    stand.check_closed();
}

TEST_CASE("a duration counts from the first frame of the run") {
    AcquisitionStand stand;
    stand.make();
    SECTION("that comes after the start") {
        stand.begin({{}, {}, 5 * ms});
        stand.turns(3);
        stand.stream(1000 * ms, 1015 * ms);
        CHECK(stand.finished.empty());
        stand.stream(1015 * ms, 1017 * ms);
        REQUIRE(stand.finished.size() == 1);
        CHECK(stand.finished[0].end.covered.start == 1000 * ms - offset);
        CHECK(stand.finished[0].end.covered.end == 1005 * ms - offset);
    }
    SECTION("or from the start") {
        stand.stream(1000 * ms, 1020 * ms);
        stand.begin({{}, {}, 5 * ms});
        CHECK(stand.started == 1);
        stand.stream(1020 * ms, 1026 * ms);
        REQUIRE(stand.finished.size() == 1);
        CHECK(stand.finished[0].end.covered.start == 1019 * ms - disorder - offset);
        CHECK(stand.finished[0].end.covered.end == 1024 * ms - disorder - offset);
    }
    CHECK(stand.finished[0].end.covered.ticks() == 5 * ms);
    CHECK(stand.finished[0].end.reason == "duration reached");
    stand.check_closed();
}

TEST_CASE("runs follow one another, the next one from where the last one ended") {
    AcquisitionStand stand;
    stand.make();
    std::uint64_t time = 1000 * ms;
    for (std::size_t run = 1; run <= 3; ++run) {
        stand.begin({{}, {}, 5 * ms});
        while (stand.finished.size() < run)
            stand.send(time += ms);
        CHECK(stand.started == static_cast<int>(run));
        if (run > 1)
            CHECK(stand.finished[run - 1].end.covered.start >= stand.finished[run - 2].end.covered.end);
        stand.check_closed();
    }
    CHECK(stand.script.resets == 1);  // before the first one, while nobody sent
}

TEST_CASE("boards that are reset end a run in progress") {
    AcquisitionStand stand;
    stand.make();
    stand.begin();
    stand.stream(50'000 * ms, 50'050 * ms);
    stand.stream(10 * ms, 20 * ms);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.reason == "the boards were reset: detector time went back");
    CHECK_FALSE(stand.finished[0].end.failed);
    CHECK(stand.finished[0].end.covered.end == 50'050 * ms + offset + 1);  // everything before the reset
    CHECK(stand.script.resets == 2);
    stand.check_closed();
    stand.begin();
    CHECK(stand.started == 2);
    stand.stream(20 * ms, 60 * ms);
    stand.end();
    stand.silence();
    REQUIRE(stand.finished.size() == 2);
    CHECK(stand.finished[1].end.covered.end == 60 * ms + offset + 1);
    stand.check_closed();
}

TEST_CASE("boards that are reset let a run wait for the start that was asked for") {
    AcquisitionStand stand;
    stand.make();
    stand.begin({far_ahead, {}, {}});
    stand.stream(50'000 * ms, 50'050 * ms);
    stand.stream(10 * ms, 20 * ms);
    CHECK(stand.script.resets == 2);
    stand.pass(1);
    CHECK(stand.started == 0);
    stand.end();
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.never_began);
}

TEST_CASE("boards that are reset between runs do not disturb the next one") {
    AcquisitionStand stand;
    stand.make();
    stand.stream(50'000 * ms, 50'050 * ms);
    stand.stream(10 * ms, 20 * ms);
    CHECK(stand.script.resets == 1);
    stand.begin();
    CHECK(stand.started == 1);
    CHECK(stand.script.resets == 1);
    stand.stream(20 * ms, 50 * ms);
    stand.end();
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.covered.start < 20 * ms);
    CHECK(stand.finished[0].end.covered.end == 50 * ms + offset + 1);
    CHECK(stand.finished[0].end.ledger.frames.received == 3000);
    stand.check_closed();
}

TEST_CASE("rows of the ledger over time do not depend on the slices") {
    std::string expected;
    for (const int interval_ms : {0, 5}) {
        AcquisitionStand stand;
        stand.options.replay = true;
        stand.options.slice_interval = std::chrono::milliseconds(interval_ms);
        stand.options.slice_frames = interval_ms == 0 ? 250 : 900;
        stand.make();
        stand.begin();
        stand.stream(1000 * ms, 3600 * ms);
        stand.end();
        stand.silence();
        REQUIRE(turns_until(stand, [&] { return !stand.finished.empty(); }));
        stand.check_closed();
        const std::string rows = read_file(stand.finished[0].run->path() / "ledger.csv");
        CHECK(std::count(rows.begin(), rows.end(), '\n') == 4);
        if (expected.empty()) expected = rows;
        CHECK(rows == expected);
    }
}

TEST_CASE("the end of the daemon ends a run, one that waits as well") {
    AcquisitionStand stand;
    Acquisition& acquisition = stand.make();
    const std::uint64_t start = GENERATE(std::uint64_t{0}, far_ahead);
    stand.begin({start, {}, {}});
    stand.stream(1000 * ms, 1003 * ms);
    acquisition.start();
    acquisition.stop();
    acquisition.stop();
    CHECK(stand.started == 1);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.reason == "daemon stopped");
    CHECK_FALSE(stand.finished[0].end.failed);
    CHECK(stand.pool.free_count() == stand.pool.count());
    stand.check_closed();
}

TEST_CASE("a slice does not keep the batches for which a receiver waits") {
    AcquisitionStand stand;
    stand.options.slice_frames = 1'000'000;
    stand.options.slice_interval = std::chrono::hours(1);
    stand.options.idle_slice_interval = std::chrono::hours(1);
    stand.make();
    stand.stream(1000 * ms, 1003 * ms);
    std::vector<net::Batch*> others;
    while (net::Batch* const batch = stand.pool.take())
        others.push_back(batch);
    REQUIRE(others.size() == stand.pool.count() - 3);
    std::atomic<bool> found{false};
    std::thread receiver([&] { found = stand.pool.wait(nullptr, std::chrono::seconds(10)); });
    CHECK(eventually([&] {
        stand.turns(1);
        return found.load();
    }));
    receiver.join();
    CHECK(stand.pool.free_count() == 3);
    for (net::Batch* const batch : others)
        stand.pool.put(batch);
}

TEST_CASE("a second is measured and shown by another thread than that of the acquisition") {
    AcquisitionStand stand;
    Acquisition& acquisition = stand.make();
    std::atomic<int> calls{0};
    std::vector<std::uint64_t> shown;
    std::vector<std::thread::id> threads;
    acquisition.on_second([&] {
        shown.push_back(acquisition.snapshot()->second->range.end);
        threads.push_back(std::this_thread::get_id());
        ++calls;
    });
    stand.stream(1010 * ms, 3200 * ms);
    stand.turns(2);
    CHECK(eventually([&] { return calls.load() == 2; }));
    CHECK(shown == std::vector<std::uint64_t>{2000 * ms, 3000 * ms});
    CHECK(std::count(threads.begin(), threads.end(), std::this_thread::get_id()) == 0);
}

TEST_CASE("the snapshots in which a run starts and ends differ by its seconds") {
    AcquisitionStand stand;
    const Acquisition& acquisition = stand.make();
    stand.stream(1010 * ms, 2500 * ms);
    stand.begin();
    REQUIRE(stand.started == 1);
    const SecondsTotal at_start = acquisition.snapshot()->seconds;
    CHECK(at_start.length_s > 1);
    stand.stream(2500 * ms, 4700 * ms);
    stand.end();
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    const RunEnd& end = stand.finished[0].end;
    const SecondsTotal of_run = acquisition.snapshot()->seconds - at_start;
    CHECK(end.seconds.length_s > 2);
    CHECK(of_run.length_s == Approx(end.seconds.length_s));
    stand.check_closed();
}

TEST_CASE("the acquisition thread runs on the cores that are asked for") {
    AcquisitionStand stand;
    const net::Cores own = own_cores();
    stand.options.cores = {own.back()};
    Acquisition& acquisition = stand.make();
    acquisition.start();
    CHECK(cores_of("acquisition") == net::to_text(stand.options.cores));
    CHECK(own_cores() == own);
    acquisition.stop();
}
