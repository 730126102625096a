// Where the data of a run begin.
#include "daemon/acquisition/data_begin.hpp"

#include "tests/support/catch.hpp"

using petacq::daemon::DataBegin;

TEST_CASE("data begin: a run started before its boards begins with their first frame") {
    DataBegin begin(100);
    begin.watch(0, std::nullopt);
    CHECK_FALSE(begin.ticks(0));
    begin.add(5000, {5050, 1});
    CHECK(begin.ticks(0) == 5000);
    begin.add(4990, {5060, 2});  // out of order
    CHECK(begin.ticks(0) == 4990);
    CHECK(begin.ticks(10) == 4980);  // singles may be earlier than their frames
    REQUIRE(begin.arrival());
    CHECK(begin.arrival()->host_ns == 1);
}

TEST_CASE("data begin: a run begins at its start if boards are sending then") {
    DataBegin begin(100);
    begin.add(900, {950, 1});
    SECTION("and have sent frames of the run already") {
        begin.watch(940, 950);
        CHECK(begin.ticks(7) == 940);
    }
    SECTION("and go on after it") {
        begin.watch(1000, 950);
        CHECK_FALSE(begin.ticks(0));
        begin.add(1030, {1040, 2});
        CHECK(begin.ticks(7) == 1000);
        CHECK(begin.arrival()->host_ns == 1);
    }
    SECTION("but not if they have paused for longer than a pause") {
        begin.watch(1000, std::nullopt);
        begin.watch_clock();
        begin.add(2000, {2010, 2});
        CHECK(begin.ticks(7) == 1993);
        CHECK(begin.arrival()->host_ns == 2);
    }
    SECTION("also in the middle of a datagram") {
        begin.watch(1000, std::nullopt);
        begin.add(980, {1020, 2});
        CHECK(begin.ticks(0) == 1000);
    }
    SECTION("also when it waits for its start") {
        begin.watch(5000, 950);
        for (std::uint64_t t = 1000; t < 4990; t += 50)
            begin.add(t, {t + 40, 3});
        CHECK_FALSE(begin.ticks(0));
        begin.add(5010, {5040, 4});
        CHECK(begin.ticks(0) == 5000);
    }
}

TEST_CASE("data begin: the time of day is that of the first datagram after a run was asked for") {
    DataBegin begin(100);
    begin.add(900, {950, 1});
    begin.watch_clock();
    begin.watch(1000, 950);
    CHECK(begin.arrival()->host_ns == 1);  // nothing else is known yet
    begin.add(1000, {1040, 2});
    begin.add(1050, {1090, 3});
    CHECK(begin.arrival()->host_ns == 2);
    begin.forget_clock();
    CHECK_FALSE(begin.arrival());
}

TEST_CASE("data begin: the time of day is not that of a source with another time") {
    DataBegin begin(100);
    begin.watch(0, std::nullopt);
    begin.watch_clock();
    begin.add(10, {20, 1});
    begin.add(9000, {9010, 2});
    begin.set_first(9000);
    CHECK(begin.ticks(0) == 9000);
    CHECK(begin.arrival()->host_ns == 2);
}

TEST_CASE("data begin: frames that were held until detector time was known count") {
    DataBegin begin(100);
    begin.watch(0, std::nullopt);
    begin.add_held(0, 0);
    CHECK(begin.ticks(0) == 0);  // a tick like any other
    begin.watch(50, std::nullopt);
    begin.add_held(10, 40);
    CHECK_FALSE(begin.ticks(0));
    begin.add_held(10, 60);
    CHECK(begin.ticks(0) == 50);
}
