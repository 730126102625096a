// When runs start and stop: every order of start, stop, watermark and first frame.
#include "daemon/acquisition/run_interval.hpp"

#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace std::chrono_literals;

namespace {

using Clock = RunInterval::Clock;
const Clock::time_point t0 = Clock::time_point() + 1h;

RunInterval waiting(std::uint64_t start, const RequestedInterval& requested = {}) {
    RunInterval interval;
    interval.wait(start, requested);
    return interval;
}

RunInterval running(std::uint64_t start, const RequestedInterval& requested = {}) {
    RunInterval interval = waiting(start, requested);
    interval.start();
    return interval;
}

}  // namespace

TEST_CASE("a run waits for its start, runs, and is gone") {
    RunInterval interval;
    CHECK(interval.none());
    CHECK_FALSE(interval.close_at(UINT64_MAX));
    interval.wait(100, {});
    CHECK(interval.waiting());
    CHECK_FALSE(interval.close_at(99));
    CHECK(interval.close_at(100) == 100);
    CHECK(interval.close_at(5000) == 100);
    interval.start();
    CHECK(interval.running());
    CHECK_FALSE(interval.close_at(UINT64_MAX));  // until it is asked to stop
    interval.finish();
    CHECK(interval.none());
    CHECK_FALSE(interval.close_at(UINT64_MAX));
}

TEST_CASE("nothing of a run is left for the next one") {
    RunInterval interval = running(100, {{}, 200, {}});
    interval.ask_to_stop("operator", {}, 0, t0);
    interval.fix_stop(150, t0);
    interval.fail("disk");
    interval.finish();
    interval.wait(300, {});
    interval.start();
    CHECK(interval.reason() == "duration reached");
    CHECK_FALSE(interval.failed());
    CHECK_FALSE(interval.overdue(t0 + 1h));
    CHECK_FALSE(interval.wants_stop(INT64_MAX));
    CHECK_FALSE(interval.close_at(UINT64_MAX));
}

TEST_CASE("a requested interval ends where it says") {
    const RunInterval interval = running(100, {100, 400, {}});
    CHECK(interval.reason() == "end of the interval");
    CHECK_FALSE(interval.close_at(399));
    CHECK(interval.close_at(400) == 400);
    CHECK(interval.close_at(1000) == 400);
    CHECK(interval.stop_ticks(1000) == 400);
}

TEST_CASE("a duration counts from the first data") {
    const RequestedInterval for_50{{}, {}, 50};
    SECTION("no data yet") {
        RunInterval interval = running(100, for_50);
        CHECK(interval.waits_for_data());
        CHECK_FALSE(interval.close_at(UINT64_MAX));
    }
    SECTION("data at the start") {
        RunInterval interval = running(100, for_50);
        interval.begin_data(90);
        CHECK_FALSE(interval.waits_for_data());
        CHECK(interval.data_begin() == 100);
        CHECK(interval.close_at(150) == 150);
    }
    SECTION("data after the start") {
        RunInterval interval = running(100, for_50);
        interval.begin_data(290);
        CHECK_FALSE(interval.close_at(339));
        CHECK(interval.close_at(340) == 340);
    }
    SECTION("a run that waits for its start does not wait for data") {
        const RunInterval interval = waiting(100, for_50);
        CHECK_FALSE(interval.waits_for_data());
    }
    SECTION("a requested stop comes first") {
        RunInterval interval = running(100, {{}, 120, 50});
        interval.begin_data(100);
        CHECK(interval.close_at(200) == 120);
    }
    SECTION("the end of the range") {
        RunInterval interval = running(100, {{}, {}, UINT64_MAX});
        interval.begin_data(100);
        CHECK(interval.close_at(UINT64_MAX) == UINT64_MAX);
    }
    SECTION("when detector time starts again, the data are still to come") {
        RunInterval interval = running(100, for_50);
        interval.begin_data(290);
        interval.time_restarted();
        CHECK(interval.waits_for_data());
        interval.begin_data(10);
        CHECK(interval.close_at(100) == 60);
    }
}

TEST_CASE("a stop waits for what has been received, however long that takes, and then for its deadline") {
    RunInterval interval = running(100);
    CHECK_FALSE(interval.wants_stop(INT64_MAX));
    interval.ask_to_stop("operator", {}, 5000, t0);
    CHECK_FALSE(interval.wants_stop(4999));
    CHECK_FALSE(interval.overdue(t0 + 1h));
    CHECK(interval.wants_stop(5000));
    interval.fix_stop(777, t0 + 2h);
    CHECK(interval.reason() == "operator");
    CHECK_FALSE(interval.wants_stop(INT64_MAX));
    CHECK_FALSE(interval.overdue(t0 + 2h - 1ns));
    CHECK(interval.overdue(t0 + 2h));
    CHECK_FALSE(interval.close_at(776));
    CHECK(interval.close_at(777) == 777);
}

TEST_CASE("a stop that was asked for comes neither after a requested one nor before the start") {
    RunInterval early = running(100, {{}, 400, {}});
    early.ask_to_stop("operator", {}, 0, t0);
    early.fix_stop(300, t0);
    CHECK(early.close_at(1000) == 300);
    RunInterval late = running(100, {{}, 400, {}});
    late.ask_to_stop("operator", {}, 0, t0);
    late.fix_stop(500, t0);
    CHECK(late.close_at(1000) == 400);
    RunInterval empty = running(100);
    empty.ask_to_stop("operator", {}, 0, t0);
    empty.fix_stop(40, t0);
    CHECK(empty.close_at(100) == 100);
}

TEST_CASE("a run that is asked to stop says so only if it stops earlier for that") {
    const auto reason_of = [](const RequestedInterval& requested, std::uint64_t end) {
        RunInterval interval = running(100, requested);
        interval.begin_data(100);
        interval.ask_to_stop("operator", {}, 0, t0);
        interval.fix_stop(end, t0);
        return interval.reason();
    };
    CHECK(reason_of({}, 399) == "operator");
    const RequestedInterval until_400{{}, 400, {}};
    CHECK(reason_of(until_400, 399) == "operator");
    CHECK(reason_of(until_400, 400) == "end of the interval");
    CHECK(reason_of(until_400, 500) == "end of the interval");
    const RequestedInterval for_300{{}, {}, 300};
    CHECK(reason_of(for_300, 399) == "operator");
    CHECK(reason_of(for_300, 400) == "duration reached");
    CHECK(reason_of(for_300, 500) == "duration reached");
    SECTION("the data have not begun") {
        RunInterval interval = running(100, for_300);
        interval.ask_to_stop("operator", {}, 0, t0);
        interval.fix_stop(500, t0);
        CHECK(interval.reason() == "operator");
    }
    SECTION("its duration is over before what had arrived has been read") {
        RunInterval interval = running(100, for_300);
        interval.begin_data(100);
        interval.ask_to_stop("operator", {}, 5000, t0);
        CHECK(interval.close_at(400) == 400);
        CHECK(interval.reason() == "duration reached");
    }
}

TEST_CASE("a stop may be asked for at a time") {
    RunInterval interval = running(100);
    CHECK_FALSE(interval.asked_stop());
    interval.ask_to_stop("operator", 300, 0, t0);
    CHECK(interval.asked_stop() == 300);
    interval.ask_to_stop("another", 200, 0, t0);
    CHECK(interval.asked_stop() == 300);
}

TEST_CASE("the first request to stop counts, and without a run there is nothing to stop") {
    RunInterval interval;
    interval.ask_to_stop("nobody", {}, 0, t0);
    CHECK_FALSE(interval.overdue(t0 + 1h));
    interval.wait(100, {});
    CHECK_FALSE(interval.overdue(t0 + 1h));
    interval.ask_to_stop("first", {}, 10, t0);
    interval.ask_to_stop("second", {}, 20, t0 + 1h);
    CHECK(interval.overdue(t0));
    CHECK_FALSE(interval.wants_stop(INT64_MAX));  // not before it runs
    interval.start();
    CHECK(interval.wants_stop(10));
    interval.fix_stop(200, t0);
    CHECK(interval.reason() == "first");
}

TEST_CASE("the end of the input ends a run, but not before a stop that has been reached") {
    RunInterval interval = running(100);
    interval.end_input("end", 500, 0);
    CHECK(interval.reason() == "end");
    CHECK(interval.stop_ticks(0) == 500);
    RunInterval reached = running(100, {{}, 400, {}});
    reached.end_input("end", 400, 0);
    CHECK(reached.reason() == "end of the interval");
    CHECK(reached.stop_ticks(0) == 400);
    RunInterval cut = running(100, {{}, 400, {}});
    cut.end_input("end", 399, 0);
    CHECK(cut.reason() == "end");
    CHECK(cut.stop_ticks(0) == 399);
    // A live run may have stopped so much after the end of its input.
    RunInterval flushed = running(100, {{}, 400, {}});
    flushed.end_input("end", 399, 1);
    CHECK(flushed.stop_ticks(0) == 400);
    RunInterval empty = running(100);
    empty.end_input("end", 50, 0);
    CHECK(empty.stop_ticks(0) == 100);
}

TEST_CASE("a run that ends early stops at the watermark, but not before its start") {
    RunInterval interval = running(100);
    CHECK(interval.stop_ticks(50) == 100);
    CHECK(interval.stop_ticks(170) == 170);
    interval.stop_now("reset", 160);
    CHECK(interval.stop_ticks(170) == 160);
    CHECK(interval.reason() == "reset");
    CHECK_FALSE(interval.failed());
    interval.fail("disk full");
    CHECK(interval.failed());
    CHECK(interval.reason() == "disk full");
}

TEST_CASE("when detector time starts again, a waiting run takes all there is") {
    RunInterval interval = waiting(1000);
    interval.time_restarted();
    CHECK(interval.close_at(0) == 0);
    RunInterval in_progress = running(1000);
    in_progress.time_restarted();
    CHECK(in_progress.start_ticks() == 0);
}

TEST_CASE("a run that waits for too long is late, and can start where the watermark stands") {
    RunInterval interval = waiting(100);
    CHECK_FALSE(interval.late(t0 + 1h));  // it may wait for ever
    interval.start_by(t0);
    CHECK_FALSE(interval.late(t0 - 1ns));
    CHECK(interval.late(t0));
    interval.start_now(40);
    CHECK(interval.close_at(40) == 40);
    interval.start();
    CHECK(interval.start_ticks() == 40);
    CHECK_FALSE(interval.late(t0));
    interval.finish();
    interval.wait(300, {});
    CHECK_FALSE(interval.late(t0 + 1h));
}

TEST_CASE("a run waits for the start that was asked for, also when time starts again") {
    RunInterval asked = waiting(700, {700, 900, {}});
    CHECK(asked.waits_for_request());
    asked.time_restarted();
    CHECK(asked.start_ticks() == 700);
    CHECK(asked.close_at(699) == std::nullopt);
    CHECK(asked.close_at(700) == 700);
    asked.start();
    CHECK_FALSE(asked.waits_for_request());
    CHECK(asked.close_at(900) == 900);

    RunInterval now = waiting(700);
    CHECK_FALSE(now.waits_for_request());
    now.time_restarted();
    CHECK(now.start_ticks() == 0);
}
