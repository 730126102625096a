#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "daemon/tracking/sequence_tracker.hpp"
#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using petacq::daemon::SequenceTracker;
using petacq::daemon::SequenceVerdict;
using petacq::test::Random;

namespace {

constexpr std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max();

/// Sends [from, from + count) in order.
void send_range(SequenceTracker& t, std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
        t.observe(from + i);
}

/// The slow model: all numbers seen, relative to the first.
struct Model {
    std::set<std::int64_t> seen;
    std::uint64_t duplicate = 0;
    std::uint64_t reordered = 0;
    std::uint64_t stray = 0;
    std::uint64_t accepted = 0;

    void observe(std::int64_t n) {
        const auto window = static_cast<std::int64_t>(SequenceTracker::window);
        if (!seen.empty() && n <= *seen.rbegin() - window) {
            ++stray;
            ++accepted;
        } else if (seen.count(n) != 0) {
            ++duplicate;
        } else {
            if (!seen.empty() && n < *seen.rbegin()) ++reordered;
            seen.insert(n);
            ++accepted;
        }
    }
    [[nodiscard]] std::uint64_t lost() const {
        return static_cast<std::uint64_t>(*seen.rbegin() - *seen.begin() + 1) - seen.size();
    }
    [[nodiscard]] std::uint64_t gaps() const {
        const std::int64_t high = *seen.rbegin();
        const std::int64_t low =
            std::max(high - static_cast<std::int64_t>(SequenceTracker::window) + 1, *seen.begin());
        const auto present = std::distance(seen.lower_bound(low), seen.end());
        return static_cast<std::uint64_t>(high - low + 1 - present);
    }
};

}  // namespace

TEST_CASE("sequence accounting agrees with a set of all numbers seen", "[tracking]") {
    const std::uint64_t seed = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
    const std::uint64_t first =
        GENERATE(std::uint64_t{0}, std::uint64_t{123'456'789}, last_number - 20'000, std::uint64_t{1} << 63);
    CAPTURE(seed, first);
    Random random(seed);
    // A stream with short and long losses and duplicates, in which each number is moved back by up to
    // `reach`.
    const std::uint64_t reach = std::vector<std::uint64_t>{1, 5, 300, 12'000}[seed % 4];
    std::vector<std::pair<std::uint64_t, std::int64_t>> stream;  // place in the stream, number
    std::int64_t n = 0;
    for (std::uint64_t i = 0; i < 60'000; ++i, ++n) {
        if (random.one_in(50)) n += static_cast<std::int64_t>(random.below(4));
        if (random.one_in(20'000)) n += static_cast<std::int64_t>(random.below(60'000));
        const auto place = static_cast<std::uint64_t>(n) + random.below(reach);
        stream.emplace_back(place, n);
        if (random.one_in(30)) stream.emplace_back(place + random.below(reach), n);
        if (random.one_in(5'000)) stream.emplace_back(place, std::max<std::int64_t>(n - 100'000, 0));
    }
    std::stable_sort(stream.begin(), stream.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });

    SequenceTracker tracker;
    Model model;
    std::size_t steps = 0;
    for (const auto& [place, number] : stream) {
        tracker.observe(first + static_cast<std::uint64_t>(number));
        model.observe(number);
        if (++steps % 997 != 0 && steps != stream.size()) continue;
        REQUIRE(tracker.lost() == model.lost());
        REQUIRE(tracker.gaps() == model.gaps());
        REQUIRE(tracker.counts().accepted == model.accepted);
        REQUIRE(tracker.counts().duplicate == model.duplicate);
        REQUIRE(tracker.counts().reordered == model.reordered);
        REQUIRE(tracker.counts().stray == model.stray);
        REQUIRE(tracker.counts().restarted == 0);
    }
    CHECK(model.lost() > 0);
    CHECK(model.duplicate > 0);
}

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

TEST_CASE("a gap as long as the window and longer", "[tracking]") {
    const std::uint64_t step = GENERATE(SequenceTracker::window - 1, SequenceTracker::window,
                                        SequenceTracker::window + 1, SequenceTracker::max_gap);
    SequenceTracker t;
    send_range(t, 0, 100);
    CHECK(t.observe(99 + step) == SequenceVerdict::in_order);
    CHECK(t.lost() == step - 1);
    CHECK(t.gaps() == std::min(step, SequenceTracker::window) - 1);
    // The whole window is open: no number in it counts as a duplicate.
    CHECK(t.observe(98 + step) == SequenceVerdict::reordered);
    CHECK(t.observe(99 + step - SequenceTracker::window + 1) ==
          (step == SequenceTracker::window - 1 ? SequenceVerdict::duplicate : SequenceVerdict::reordered));
}

TEST_CASE("a number a whole window late is stray, one less is still known", "[tracking]") {
    SequenceTracker t;
    send_range(t, 0, 2 * SequenceTracker::window);
    const std::uint64_t highest = 2 * SequenceTracker::window - 1;
    CHECK(t.observe(highest - SequenceTracker::window + 1) == SequenceVerdict::duplicate);
    CHECK(t.observe(highest - SequenceTracker::window) == SequenceVerdict::stray);
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
    SECTION("the same numbers again") {
        CHECK(t.observe(50'000, 2) == SequenceVerdict::new_stream);
        CHECK(t.observe(50'100, 2) == SequenceVerdict::in_order);
        CHECK(t.lost() == 99);
    }
    SECTION("what is still under way is not a new stream") {
        CHECK(t.observe(50'100, 1, true) == SequenceVerdict::duplicate);
        CHECK(t.observe(50'050) == SequenceVerdict::duplicate);
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
