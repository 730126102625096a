#include <algorithm>
#include <limits>

#include "daemon/tracking/sequence_tracker.hpp"
#include "tests/support/catch.hpp"

using petacq::daemon::SequenceTracker;
using petacq::daemon::SequenceVerdict;

namespace {

constexpr std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max();

/// Sends [from, from + count) in order.
void send_range(SequenceTracker& t, std::uint64_t from, std::uint64_t count, std::uint32_t content = 1) {
    for (std::uint64_t i = 0; i < count; ++i)
        t.observe(from + i, content);
}
/// The same, the last with the end-of-stream flag.
void send_stream(SequenceTracker& t, std::uint64_t from, std::uint64_t count, std::uint32_t content = 1) {
    send_range(t, from, count - 1, content);
    t.observe(from + count - 1, content, true);
}

}  // namespace

TEST_CASE("a late datagram takes its loss back", "[tracking]") {
    SequenceTracker t;
    send_range(t, 10, 5);
    CHECK(t.observe(20) == SequenceVerdict::in_order);
    CHECK(t.lost() == 5);
    CHECK(t.gaps() == 5);
    CHECK(t.observe(17) == SequenceVerdict::reordered);
    CHECK(t.lost() == 4);
    CHECK(t.observe(17) == SequenceVerdict::duplicate);
    CHECK(t.lost() == 4);
    for (const std::uint64_t n : {15U, 16U, 18U, 19U})
        t.observe(n);
    CHECK(t.lost() == 0);
    CHECK(t.gaps() == 0);
}

TEST_CASE("a datagram just below the first one moves the beginning", "[tracking]") {
    SequenceTracker t;
    t.observe(5);
    CHECK(t.observe(2) == SequenceVerdict::reordered);
    CHECK(t.lost() == 2);  // 3 and 4
    t.observe(4);
    t.observe(3);
    CHECK(t.lost() == 0);
    CHECK(t.observe(2) == SequenceVerdict::duplicate);
    // 2^64 - 1 precedes 0.
    t.observe(0);
    CHECK(t.observe(last_number) == SequenceVerdict::reordered);
    CHECK(t.lost() == 1);
}

TEST_CASE("a small gap is a loss at once, a larger one when three datagrams agree", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 100);
    CHECK(t.observe(99 + SequenceTracker::near) == SequenceVerdict::in_order);
    CHECK(t.lost() == SequenceTracker::near - 1);
    CHECK(t.gaps() == SequenceTracker::near - 1);
    const std::uint64_t step =
        GENERATE(SequenceTracker::near + 1, SequenceTracker::window - 1, SequenceTracker::window,
                 SequenceTracker::window + 1, 2 * SequenceTracker::window + 1, SequenceTracker::max_gap - 10);
    CAPTURE(step);
    SequenceTracker u;
    send_range(u, 0, 100);
    CHECK(u.observe(99 + step) == SequenceVerdict::stray);
    CHECK(u.observe(99 + step + 3) == SequenceVerdict::stray);
    CHECK(u.lost() == 0);
    CHECK(u.observe(99 + step + 1) == SequenceVerdict::in_order);
    CHECK(u.lost() == step);
    CHECK(u.gaps() == std::min(step, SequenceTracker::window - 3));
    CHECK(u.counts().restarted == 0);
    // The whole window is open: no number in it counts as a copy.
    CHECK(u.observe(99 + step + 2) == SequenceVerdict::reordered);
    CHECK(u.observe(99 + step + 1) == SequenceVerdict::duplicate);
    CHECK(u.observe(98 + step) == SequenceVerdict::reordered);
    CHECK(u.lost() == step - 2);
}

TEST_CASE("the end of a stream shows how many are missing before it", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 100);
    CHECK(t.observe(600, 1, true) == SequenceVerdict::in_order);
    CHECK(t.lost() == 500);
    CHECK(t.ended());
}

TEST_CASE("a datagram that overtakes many others is not lost when they have arrived", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 100);
    CHECK(t.observe(1100) == SequenceVerdict::stray);
    send_range(t, 100, 1000);
    CHECK(t.observe(1101) == SequenceVerdict::in_order);
    CHECK(t.lost() == 0);
    CHECK(t.observe(1100) == SequenceVerdict::duplicate);
    CHECK(t.counts().reordered == 0);
}

TEST_CASE("one wild number is neither a loss nor a restart", "[tracking]") {
    const std::uint64_t wild =
        GENERATE(5999U + 65U, 5999U + 1000U, 5999U + 20'000U, 3U, std::uint64_t{1} << 60);
    CAPTURE(wild);
    SequenceTracker t;
    send_range(t, 5000, 1000, 7);
    CHECK(t.observe(wild, 9) == SequenceVerdict::stray);
    CHECK(t.observe(wild, 9) == SequenceVerdict::duplicate);
    send_range(t, 6000, 13, 7);
    CHECK(t.lost() == 0);
    send_range(t, 6013, 2000, 7);
    CHECK(t.lost() == 0);
    CHECK(t.counts().restarted == 0);
    CHECK(t.counts().accepted == 3014);
    CHECK(t.counts().stray == 1);
    CHECK(t.counts().reordered == 0);
}

TEST_CASE("a copy a whole window late is still known", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 2 * SequenceTracker::window);
    const std::uint64_t highest = 2 * SequenceTracker::window - 1;
    CHECK(t.observe(highest - SequenceTracker::window + 1, 2) == SequenceVerdict::stray);
    CHECK(t.observe(highest - SequenceTracker::window + 1) == SequenceVerdict::duplicate);
    // The content is remembered for longer than the number.
    CHECK(t.observe(highest - SequenceTracker::window) == SequenceVerdict::duplicate);
    CHECK(t.observe(highest - SequenceTracker::window, 2) == SequenceVerdict::stray);
    CHECK(t.lost() == 0);
}

TEST_CASE("numbers far off are stray until a few in a row confirm a restart", "[tracking]") {
    SequenceTracker t;
    send_range(t, 1'000'000, 100);
    t.observe(1'000'105);  // five are lost for good
    SECTION("backwards: a board that begins again at 0") {
        CHECK(t.observe(0) == SequenceVerdict::stray);
        CHECK(t.observe(1) == SequenceVerdict::stray);
        CHECK(t.counts().restarted == 0);
        CHECK(t.observe(2) == SequenceVerdict::restart);
        CHECK(t.observe(3) == SequenceVerdict::in_order);
        CHECK(t.observe(1) == SequenceVerdict::duplicate);
        CHECK(t.observe(5) == SequenceVerdict::in_order);
        CHECK(t.counts().restarted == 1);
        CHECK(t.counts().stray == 3);
        CHECK(t.lost() == 6);
        CHECK(t.gaps() == 1);
    }
    SECTION("forwards, beyond what a loss can be") {
        const std::uint64_t far = 1'000'105 + SequenceTracker::max_gap + 1;
        CHECK(t.observe(far) == SequenceVerdict::stray);
        CHECK(t.observe(far + 2) == SequenceVerdict::stray);
        CHECK(t.observe(far + 1) == SequenceVerdict::restart);
        CHECK(t.lost() == 5);
    }
    SECTION("an ordinary datagram between them breaks the row") {
        t.observe(0);
        t.observe(1);
        CHECK(t.observe(1'000'106) == SequenceVerdict::in_order);
        CHECK(t.observe(2) == SequenceVerdict::stray);
        CHECK(t.observe(3) == SequenceVerdict::stray);
        CHECK(t.counts().restarted == 0);
        CHECK(t.lost() == 5);
    }
    SECTION("numbers that do not lie together confirm nothing") {
        for (std::uint64_t i = 0; i < 50; ++i) {
            CHECK(t.observe((std::uint64_t{1} << 40) + i * 1'000'000) == SequenceVerdict::stray);
        }
        CHECK(t.counts().restarted == 0);
        CHECK(t.lost() == 5);
    }
    SECTION("a duplicate confirms nothing and is discarded") {
        CHECK(t.observe(0) == SequenceVerdict::stray);
        CHECK(t.observe(0) == SequenceVerdict::duplicate);
        CHECK(t.observe(0) == SequenceVerdict::duplicate);
        CHECK(t.observe(1) == SequenceVerdict::stray);
        CHECK(t.observe(2) == SequenceVerdict::restart);
        CHECK(t.counts().duplicate == 2);
    }
}

TEST_CASE("a number used again for other content is not a duplicate", "[tracking]") {
    SequenceTracker t;
    for (std::uint64_t i = 0; i < 1000; ++i)
        t.observe(i, 7);
    // The board was reset, all within the window.
    CHECK(t.observe(0, 8) == SequenceVerdict::stray);
    CHECK(t.observe(1, 8) == SequenceVerdict::stray);
    CHECK(t.observe(2, 8) == SequenceVerdict::restart);
    CHECK(t.observe(2, 8) == SequenceVerdict::duplicate);
    for (std::uint64_t i = 3; i < 1000; ++i)
        REQUIRE(t.observe(i, 8) == SequenceVerdict::in_order);
    CHECK(t.lost() == 0);
    CHECK(t.counts().duplicate == 1);
}

TEST_CASE("after an end of stream the next stream needs no confirmation", "[tracking]") {
    SequenceTracker t;
    send_range(t, 50'000, 100);
    t.observe(50'100, 1, true);
    REQUIRE(t.ended());
    SECTION("far behind") {
        CHECK(t.observe(0) == SequenceVerdict::new_stream);
        CHECK_FALSE(t.ended());
        CHECK(t.observe(1) == SequenceVerdict::in_order);
        CHECK(t.lost() == 0);
        CHECK(t.counts().restarted == 1);
        CHECK(t.counts().stray == 0);
    }
    SECTION("far ahead: a first value, not a loss") {
        CHECK(t.observe(50'100 + SequenceTracker::window + 1) == SequenceVerdict::new_stream);
        CHECK(t.lost() == 0);
    }
    SECTION("the same numbers again, with other content") {
        CHECK(t.observe(50'000, 2) == SequenceVerdict::new_stream);
        CHECK(t.observe(50'100, 2, true) == SequenceVerdict::in_order);
        CHECK(t.lost() == 99);
        CHECK(t.counts().new_streams == 1);
    }
    SECTION("what is still under way is not a new stream") {
        CHECK(t.observe(50'100, 1, true) == SequenceVerdict::duplicate);
        CHECK(t.observe(50'090) == SequenceVerdict::duplicate);
        CHECK(t.observe(50'102) == SequenceVerdict::in_order);
        CHECK_FALSE(t.ended());
        CHECK(t.observe(50'101) == SequenceVerdict::reordered);
        CHECK(t.counts().restarted == 0);
    }
}

TEST_CASE("an end of stream that overtakes leaves a gap until the others are there", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 10);
    t.observe(12, 1, true);
    CHECK(t.ended());
    CHECK(t.gaps() == 2);
    t.observe(10);
    t.observe(11);
    CHECK(t.ended());
    CHECK(t.gaps() == 0);
}

TEST_CASE("a restart of the numbers is not a loss", "[tracking]") {
    const bool announced = GENERATE(false, true);
    const std::uint64_t first = GENERATE(5000U, 0U, 500U, 4500U);
    CAPTURE(announced, first);
    SequenceTracker t;
    if (announced) {
        send_stream(t, first, 1000, 7);
    } else {
        send_range(t, first, 1000, 7);
    }
    send_range(t, 0, 1000, 8);
    CHECK(t.lost() == 0);
    CHECK(t.counts().accepted == 2000);
    CHECK(t.counts().restarted == 1);
    CHECK(t.counts().new_streams == (announced ? 1 : 0));
    CHECK(t.counts().reordered == 0);
    CHECK(t.counts().duplicate + t.counts().repeated == 0);
    // A second one, after which the losses of the first epochs stay.
    t.observe(1010, 8);
    send_range(t, 0, 100, 9);
    send_range(t, 100, 100, 9);
    CHECK(t.lost() == 10);
    CHECK(t.counts().restarted == 2);
}

TEST_CASE("a stream that is sent again after its end is repeated", "[tracking]") {
    const std::uint64_t length = GENERATE(2U, 7U, 1000U, 4000U, 16'000U);
    SequenceTracker t;
    send_stream(t, 300, length, 7);
    CHECK(t.observe(300 + length - 1, 7, true) == SequenceVerdict::duplicate);  // by the network
    for (int times = 1; times < 3; ++times) {
        send_stream(t, 300, length, 7);
        CHECK(t.counts().repeated == length * static_cast<std::uint64_t>(times));
    }
    CHECK(t.counts().accepted == length);
    CHECK(t.counts().duplicate == 1);
    CHECK(t.counts().restarted == 0);
    CHECK(t.lost() == 0);
    // The source goes on: nothing is repeated any more.
    CHECK(t.observe(300 + length, 7) == SequenceVerdict::in_order);
    CHECK(t.observe(300 + length - 1, 7) == SequenceVerdict::duplicate);
}

TEST_CASE("what was missing the first time is taken when the stream is sent again", "[tracking]") {
    SequenceTracker t;
    t.observe(301, 7);
    send_range(t, 303, 96, 7);
    t.observe(399, 7, true);
    CHECK(t.lost() == 1);
    send_stream(t, 301, 99, 7);
    CHECK(t.lost() == 0);
    CHECK(t.counts().accepted == 99);
    CHECK(t.counts().repeated == 98);
    CHECK(t.counts().duplicate == 0);
}

TEST_CASE("copies from before a restart are recognised", "[tracking]") {
    const bool announced = GENERATE(false, true);
    const std::uint64_t second = GENERATE(std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{1} << 40);
    CAPTURE(announced, second);
    SequenceTracker t;
    if (announced) {
        send_stream(t, 5000, 1000, 7);
    } else {
        send_range(t, 5000, 1000, 7);
    }
    send_range(t, second, 500, 8);
    REQUIRE(t.counts().restarted == 1);
    CHECK(t.observe(5990, 7) == SequenceVerdict::repeated);
    CHECK(t.observe(5100, 7) == SequenceVerdict::repeated);
    CHECK(t.observe(second + 100, 8) == SequenceVerdict::duplicate);
    CHECK(t.observe(second + 500, 8) == SequenceVerdict::in_order);
    send_range(t, second + 501, 1000, 8);
    CHECK(t.observe(5990, 7) == SequenceVerdict::repeated);
    CHECK(t.counts().accepted == 2501);
    CHECK(t.lost() == 0);
}

TEST_CASE("a datagram missing before a restart may arrive after it", "[tracking]") {
    SequenceTracker t;
    send_range(t, 5000, 100, 7);
    send_range(t, 5101, 100, 7);
    send_range(t, 0, 50, 8);
    CHECK(t.lost() == 1);
    CHECK(t.observe(5100, 7) == SequenceVerdict::reordered);
    CHECK(t.lost() == 0);
    CHECK(t.observe(5100, 7) == SequenceVerdict::repeated);
    CHECK(t.observe(50, 8) == SequenceVerdict::in_order);
}

TEST_CASE("the loss of a run counts what was noticed in it", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 10);
    t.observe(11);  // 10 is missing when the run starts
    t.mark();
    const std::uint64_t before = t.lost();
    const auto lost_in_run = [&] { return t.lost() - before + t.counts().recovered; };
    CHECK(lost_in_run() == 0);
    t.observe(13);
    CHECK(lost_in_run() == 1);
    t.observe(10);
    CHECK(t.lost() == 1);
    CHECK(lost_in_run() == 1);
    CHECK(t.counts().recovered == 1);
    t.observe(12);
    CHECK(lost_in_run() == 0);
    CHECK(t.counts().recovered == 1);
    SECTION("across a restart") {
        t.observe(15);
        t.mark();
        send_range(t, 1'000, 100, 2);
        send_range(t, 0, 100, 3);
        t.observe(14);
        CHECK(t.lost() == 984);
        CHECK(t.counts().recovered == 2);
    }
    SECTION("numbers below the first one") {
        SequenceTracker u;
        u.observe(20);
        u.mark();
        u.observe(17);
        CHECK(u.lost() == 2);
        u.observe(18);
        u.observe(19);
        CHECK(u.lost() == 0);
        CHECK(u.counts().recovered == 0);
    }
}

TEST_CASE("datagrams between two long losses are no strays", "[tracking]") {
    SequenceTracker tracker;
    std::uint64_t accepted = 0;
    std::uint64_t number = 0;
    const auto send = [&](std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i, ++number, ++accepted)
            tracker.observe(number, static_cast<std::uint32_t>(number + 1));
    };
    send(10);
    for (int i = 0; i < 3; ++i) {
        number += 5'000;
        send(1);
    }
    number += 5'000;
    send(10);
    CHECK(tracker.counts().stray == 0);
    CHECK(tracker.counts().restarted == 0);
    CHECK(tracker.lost() == number - accepted);
    CHECK(tracker.lost() == 20'000);
    // A wild number is one.
    tracker.observe(number + 100'000, 1);
    send(10);
    CHECK(tracker.counts().stray == 1);
}
