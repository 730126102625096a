// Watermark: how far the sources allow it, and how far it goes without them.
#include <cstdint>
#include <vector>

#include "daemon/tracking/watermark.hpp"
#include "tests/daemon/tracking/clocks.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

struct Sea : Clocks {
    using Clocks::Clocks;
    std::uint64_t advance(std::int64_t now, std::uint64_t latest_pending_time = 0) {
        time.decide(now);
        return watermark.advance(now, latest_pending_time);
    }
    void end(std::uint16_t id) { source(id).sequence.observe(1, 1, true); }
    Watermark watermark{options, table, time};
};

/// What the watermark is behind the slowest source.
constexpr std::uint64_t behind = 10 * ms + 100;
/// By how much it passes the newest frame when nothing is waited for.
constexpr std::uint64_t flush = 100 + 5000 + 1;

}  // namespace

TEST_CASE("the watermark is behind the slowest member in place, and never decreases") {
    Sea c(usual_options());
    CHECK(c.advance(began) == 0);
    CHECK(c.watermark.held());
    std::int64_t now = c.run({1, 2}, start, began, 5);
    CHECK(c.advance(now) == start + 4 * ms - behind);
    c.send(2, start + 50 * ms, now);
    CHECK(c.advance(now) == start + 4 * ms - behind);
    c.send(1, start + 30 * ms, now);
    CHECK(c.advance(now) == start + 30 * ms - behind);
    CHECK(c.watermark.held());
    for (int i = 0; i < 3; ++i)
        c.send(1, start, now);  // a step back
    CHECK(c.source(1).steps_back == 1);
    CHECK(c.advance(now) == start + 30 * ms - behind);
    CHECK(c.watermark.ticks() == start + 30 * ms - behind);
    // A source more than max_lag behind holds nothing.
    now = c.run({3}, start - 2'000 * ms, now, 4);
    for (const std::uint16_t id : Ids{1, 2})
        c.send(id, start + 90 * ms, now);
    CHECK(c.advance(now) == start + 90 * ms - behind);
}

TEST_CASE("the watermark of times next to 0 and to 2^64") {
    Sea low(usual_options());
    std::int64_t now = low.run({1, 2}, 0, began, 11);
    CHECK(low.advance(now) == 0);
    now = low.run({1, 2}, 11 * ms, now, 1);
    CHECK(low.advance(now) == 11 * ms - behind);

    Sea high(usual_options());
    now = high.run({1, 2}, UINT64_MAX - 4 * ms, began, 10);
    CHECK(high.advance(now) == UINT64_MAX - behind);
    high.end(1);
    high.end(2);
    CHECK(high.advance(now) == UINT64_MAX);
}

TEST_CASE("a member of which all frames have the time 0 is no reason to pass anything") {
    TrackerOptions options = usual_options();
    options.expected = {1};
    Sea c(options);
    for (int i = 0; i < 4; ++i) {
        Verdict verdict;
        c.time.observe(c.source(1), {0, 0, 90}, began, verdict);
    }
    c.time.decide(began);
    REQUIRE(c.source(1).member);
    c.end(1);
    CHECK(c.advance(began) == 0);
    CHECK_FALSE(c.watermark.held());
}

TEST_CASE("an expected source that is never heard holds the watermark for source_timeout") {
    TrackerOptions options = usual_options();
    options.expected = {1, 2, 3};
    Sea c(options);
    c.run({1, 2}, start, began, 5);
    const std::int64_t due = *c.time.first_proven_ns() + options.source_timeout_ns;
    for (const std::uint16_t id : Ids{1, 2})
        c.send(id, start + 400 * ms, due - 1);
    CHECK(c.advance(due - 1) == 0);
    CHECK(c.watermark.held());
    CHECK(c.advance(due) == start + 400 * ms - behind);
    // Once it is proven, it need not be waited for.
    Sea all(options);
    const std::int64_t now = all.run({1, 2, 3}, start, began, 5);
    CHECK(all.advance(now) == start + 4 * ms - behind);
}

TEST_CASE("a silent member releases the watermark after source_timeout") {
    Sea c(usual_options());
    c.run({1, 2}, start, began, 5);
    const std::int64_t last = *c.source(1).frame_ns;
    const std::int64_t due = last + c.options.source_timeout_ns;
    c.send(2, start + 400 * ms, due - 1);
    CHECK(c.advance(due - 1) == start + 4 * ms - behind);
    CHECK(c.advance(due) == start + 400 * ms - behind);
}

TEST_CASE("a member that has ended releases the watermark when no number is missing") {
    Sea c(usual_options());
    const std::int64_t now = c.run({1, 2}, start, began, 5);
    c.source(1).sequence.observe(1);
    c.source(1).sequence.observe(3, 1, true);
    c.send(2, start + 50 * ms, now);
    CHECK(c.advance(now) == start + 4 * ms - behind);
    c.source(1).sequence.observe(2);
    CHECK(c.advance(now) == start + 50 * ms - behind);
}

TEST_CASE("when all members have ended, everything received is decided") {
    Sea c(usual_options());
    const std::int64_t now = c.run({1, 2}, start, began, 5);
    c.end(1);
    c.end(2);
    const std::uint64_t newest = start + 5 * ms;
    CHECK(c.advance(now) == newest + flush);
    CHECK_FALSE(c.watermark.held());
    // A single that waits is decided, too, unless its time is wild.
    CHECK(c.advance(now, newest + ms) == newest + ms + flush);
    CHECK(c.advance(now, newest + 10 * ms) == newest + 10 * ms + flush);
    CHECK(c.advance(now, newest + 10 * ms + 1) == newest + 10 * ms + flush);
    CHECK(c.advance(now, UINT64_MAX) == newest + 10 * ms + flush);
}

TEST_CASE("when all members are silent, the watermark stays behind the present time") {
    Sea c(usual_options());
    const std::uint64_t ahead = start + 900 * ms;
    const std::uint64_t newest = ahead + ms;
    const auto silence = [&](Sea& sea) {
        const std::int64_t now = sea.run({1, 2}, start, began, 5);
        sea.send(2, ahead, now);  // one board leads
        return now + sea.options.source_timeout_ns;
    };
    std::int64_t now = silence(c);
    CHECK(c.advance(now) == c.time.present(now) - behind);
    CHECK_FALSE(c.watermark.held());
    CHECK(c.watermark.ticks() < newest);
    now += 1'000 * host_ms;
    CHECK(c.advance(now) == newest + flush);

    TrackerOptions options = usual_options();
    options.ticks_per_ns = 0;  // the present time is unknown
    Sea unknown(options);
    CHECK(unknown.advance(silence(unknown)) == newest + flush);
}

TEST_CASE("another calibration moves the watermark only forward") {
    Sea c(usual_options());
    const std::int64_t now = c.run({1, 2}, start, began, 5);
    CHECK(c.advance(now) == start + 4 * ms - behind);
    c.watermark.set_max_offset(300);
    CHECK(c.advance(now) == start + 4 * ms - behind);
    c.watermark.set_max_offset(0);
    CHECK(c.advance(now) == start + 4 * ms - 10 * ms);
    c.watermark.restart();
    CHECK(c.watermark.ticks() == 0);
    CHECK(c.advance(now) == start + 4 * ms - 10 * ms);
}

TEST_CASE("slow sources are given up in an order that ends at the reference") {
    Sea c(usual_options());
    std::int64_t now = c.run({1, 2, 3, 4}, start, began, 5);
    // 2 is silent; of the others, 1 lags.
    now += 100 * host_ms;
    for (int i = 0; i < 3; ++i, now += host_ms) {
        c.send(1, start + 40 * ms, now);
        c.send(3, start + 100 * ms, now);
        c.send(4, start + 105 * ms, now);
    }
    const std::uint64_t held = c.advance(now);
    REQUIRE(held == start + 4 * ms - behind);
    const auto given = [&](std::uint64_t from) {
        return c.watermark.without_slow(now, [&](std::uint64_t ticks) { return ticks >= from; });
    };
    CHECK(given(0) == held);                                          // it fits
    CHECK(given(held + 1) == start + 40 * ms - behind);               // without the silent one
    CHECK(given(start + 40 * ms) == start + 100 * ms - behind);       // without the one that lags
    CHECK(given(start + 100 * ms - behind + 1) == start + 100 * ms);  // without disorder
    CHECK(given(UINT64_MAX) == start + 100 * ms);
    CHECK(c.watermark.ticks() == held);
    // Nobody is in place.
    now += c.options.source_timeout_ns;
    CHECK(given(0) == 0);
}

TEST_CASE("a member that has just been heard is not given up as silent") {
    Sea c(usual_options());
    const std::int64_t now = c.run({1, 2}, start, began, 5);
    c.send(2, start + 50 * ms, now);
    c.advance(now);
    // Of two, the reference is that of the one ahead.
    const auto never = [](std::uint64_t) { return false; };
    CHECK(c.watermark.without_slow(now, never) == *c.time.reference());
    CHECK(*c.time.reference() == start + 50 * ms);
}

TEST_CASE("one member left in place does not lead the watermark past the time of the host") {
    Sea c(usual_options());
    std::int64_t now = c.run({1, 2, 3}, start, began, 5);
    now += 400 * host_ms;
    c.send(3, start + 900 * ms, now);
    c.advance(now);
    const auto never = [](std::uint64_t) { return false; };
    CHECK(c.watermark.without_slow(now, never) == c.time.present(now));
    CHECK(c.time.present(now) < start + 410 * ms);
}
