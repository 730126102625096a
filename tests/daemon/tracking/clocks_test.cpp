// Which detector times are accepted: wild times, clocks that jump or are reset, boards that disagree.
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

TEST_CASE("the short way of a clock is what the long one does", "[tracking]") {
    constexpr std::uint64_t max_jump = 1000;
    std::mt19937_64 random(7);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::size_t taken = 0;
    for (int stream = 0; stream < 200; ++stream) {
        TimeGuard guard({max_jump, 100, 3});
        std::uint64_t time = 10'000;
        for (int i = 0; i < 200; ++i) {
            // Mostly in order; now and then behind, ahead, wild, or with the ends exchanged.
            time += below(4) == 0 ? below(2 * max_jump) : below(50);
            const std::uint64_t first = time - (below(8) == 0 ? below(300) : 0);
            const std::uint64_t last = below(30) == 0 ? random() : first + below(max_jump);
            DatagramTimes d{first, last, static_cast<std::uint32_t>(1 + below(3))};
            if (below(20) == 0) std::swap(d.first, d.last);
            TimeGuard shorter = guard;
            std::uint64_t believed = 0;
            const TimeGuard::Step step = guard.observe(d, 0, believed);
            if (!shorter.goes_on(d, d)) continue;
            shorter.go_on(d);
            ++taken;
            REQUIRE(step == TimeGuard::Step::followed);
            REQUIRE(believed == d.last);
            REQUIRE(shorter == guard);
        }
    }
    CHECK(taken > 10'000);
}

TEST_CASE("a clock of another rate is known after two seconds that say the same", "[tracking]") {
    constexpr double ticks_per_ns = 64;
    constexpr std::int64_t second = 1'000'000'000;
    const double rate = GENERATE(0.0, 1e-6, 1.0 / 64, 0.25, 1.0, 4.0, 6.0, 1000.0);
    CAPTURE(rate);
    const bool wrong = rate < 0.2 || rate > 5;
    ClockRate clock;
    const auto send_until = [&](std::int64_t& now, std::int64_t end, std::uint64_t steps) {
        for (; now <= end; now += second / 100)
            clock.observe(static_cast<std::uint64_t>(1e15 + rate * ticks_per_ns * static_cast<double>(now)),
                          steps, now, ticks_per_ns);
    };
    std::int64_t now = 0;
    send_until(now, second, 0);
    CHECK_FALSE(clock.wrong());
    send_until(now, 2 * second + second / 10, 0);
    REQUIRE(clock.wrong().has_value() == wrong);
    if (wrong) CHECK(clock.wrong()->ticks_per_s == Approx(64e9 * rate).margin(1));
    const std::uint64_t seconds = clock.wrong_seconds();
    // What the clock made before a jump or a step back says nothing about the time after it.
    send_until(now, 3 * second + second / 2, 1);
    CHECK_FALSE(clock.wrong());
    CHECK(clock.wrong_seconds() == seconds);
    CHECK(clock.latest().has_value() == wrong);
}

TEST_CASE("a source has the rate of its own clock", "[tracking]") {
    auto o = usual_options();
    o.expected = {1, 2};
    Detector d(o);
    std::int64_t now = host(start);
    for (std::uint64_t i = 0; i < 300; ++i, now += 10 * host_ms) {
        d.send(1, start + 10 * i * ms, start + (10 * i + 1) * ms, 90, now);
        d.send(2, start + i * ms / 100, start + i * ms / 100, 90, now);
    }
    CHECK_FALSE(d.status(1, now).rate);
    CHECK(d.status(1, now).wrong_seconds == 0);
    REQUIRE(d.status(2, now).rate);
    CHECK(d.status(2, now).rate->ticks_per_s == Approx(1e6));
    CHECK(d.status(2, now).rate->expected_per_s == Approx(1e9));
    CHECK(d.status(2, now).wrong_seconds > 0);
}

TEST_CASE("data that waited in a board are no clock of another rate", "[tracking]") {
    ClockRate clock;
    std::uint64_t time = 1'000'000'000'000;
    std::int64_t now = 0;
    // Ten seconds arrive at once, then others in shorter and shorter time.
    for (const std::int64_t ns : {1'000, 1'000, 100, 150, 1'000, 125, 200, 1'000, 1'000}) {
        for (int i = 0; i < 1000; ++i) {
            time += 64'000'000;
            clock.observe(time, 0, now += ns * 1000, 64);
            CHECK_FALSE(clock.wrong());
        }
    }
}

TEST_CASE("a source that returns from a long pause with single frames has not jumped", "[tracking]") {
    const std::uint64_t pause = GENERATE(1000 * ms, 8000 * ms, 3'600'000 * ms);
    CAPTURE(pause);
    const auto o = options_for_one();
    Detector d(o);
    run(d, {1}, start, start + 20 * ms);
    const std::uint64_t back = start + 20 * ms + pause;
    for (std::uint64_t i = 0; i < 20; ++i) {
        const std::uint64_t t = back + 50 * i * ms;
        CHECK(takes(d.send(1, t, t, 1, host(t)), t));
    }
    CHECK(d.status(1, host(back + 1000 * ms)).clock_jumps == 0);
    // A single frame that is wild does not lead the clock past the place where the host expects it.
    const std::uint64_t again = back + 1000 * ms + pause;
    d.send(1, again + 1500 * ms, again + 1500 * ms, 1, host(again));
    CHECK(d.status(1, host(again)).progress <= again + ms);
}

TEST_CASE("one wild frame time never moves the watermark and costs no other frame", "[tracking]") {
    const std::uint64_t wild =
        GENERATE(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), start + 1500 * ms,
                 start - 1500 * ms, start ^ (std::uint64_t{1} << 43));
    const bool at_end = GENERATE(true, false);
    const std::uint32_t frames = GENERATE(1U, 2U, 90U);
    CAPTURE(wild, at_end, frames);
    const auto o = options_for_one();
    Detector d(o);
    run(d, {1}, start, start + 20 * ms);
    const std::uint64_t t = start + 20 * ms;
    // The other end of the datagram has a true time.
    const std::uint64_t most = t + ms - o.max_disorder - o.max_offset;
    d.tracker.watermark(host(t), 0);
    const std::uint64_t first = frames == 1 || !at_end ? wild : t;
    const std::uint64_t last = frames == 1 || at_end ? wild : t + ms;
    const Verdict v = d.send(1, first, last, frames, host(t));
    CHECK(d.tracker.watermark(host(t), 0) <= most);
    if (frames > 1) {
        CHECK(takes(v, t));
        CHECK(takes(v, t + ms));
        CHECK(takes(v, t - 9 * ms));  // a reordered datagram
    } else if (o.max_jump < time_between(wild, t)) {
        CHECK(rejected(v));
    }
    CHECK(run(d, {1}, start + 21 * ms, start + 40 * ms));
    CHECK(d.tracker.watermark(host(start + 40 * ms), 0) == start + 39 * ms - o.max_disorder - o.max_offset);
    CHECK(d.tracker.totals().clock_jumps == 0);
}

TEST_CASE("a wild time in the very first datagram does not move the watermark", "[tracking]") {
    const std::uint32_t frames = GENERATE(1U, 90U);
    const bool at_end = GENERATE(true, false);
    const auto o = options_for_one();
    Detector d(o);
    const std::uint64_t wild = GENERATE(start + 1'000'000 * ms, UINT64_MAX, std::uint64_t{0});
    d.send(1, frames == 1 || !at_end ? wild : start, frames == 1 || at_end ? wild : start + ms, frames, 0);
    CHECK(d.tracker.watermark(0, 0) == 0);
    CHECK_FALSE(d.tracker.time().established());
    CHECK(run(d, {1}, start + ms, start + 50 * ms));
    CHECK(takes(d.tracker.time().believed_times(), start));
    CHECK_FALSE(takes(d.tracker.time().believed_times(), wild));
    CHECK(d.tracker.watermark(host(start + 50 * ms), 0) == start + 49 * ms - o.max_disorder - o.max_offset);
    CHECK(d.tracker.totals().clock_jumps == 0);
}

TEST_CASE("datagrams of one frame each lose none", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    for (std::uint64_t t = start; t < start + 100 * ms; t += ms) {
        CHECK(takes(d.send(1, t, t, 1, host(t)), t));
        CHECK(takes(d.send(2, t + 7, t + 7, 1, host(t)), t + 7));
        CHECK(d.tracker.watermark(host(t), 0) <= t);
    }
    CHECK(d.tracker.totals().jumped_datagrams == 0);
    CHECK(d.tracker.watermark(host(start + 99 * ms), 0) == start + 98 * ms - o.max_disorder - o.max_offset);
}

TEST_CASE("a clock jump is believed after a few datagrams that agree, not before", "[tracking]") {
    const std::int64_t by = GENERATE(-4'000'000 * host_ms, 3'000'000 * host_ms);
    Detector d(options_for_one());
    run(d, {1}, start, start + 50 * ms);
    const std::uint64_t before = d.tracker.watermark(host(start + 50 * ms), 0);
    const std::uint64_t there = start + 50 * ms + static_cast<std::uint64_t>(by);
    const std::int64_t now = host(start + 51 * ms);
    CHECK(rejected(d.send(1, there, there + ms, 90, now)));
    CHECK(d.status(1, now).state == SourceState::jumping);
    CHECK(rejected(d.send(1, there + ms, there + 2 * ms, 90, now)));
    CHECK(d.tracker.watermark(now, 0) == before);
    SECTION("confirmed") {
        const Verdict third = d.send(1, there + 2 * ms, there + 3 * ms, 90, now);
        CHECK(d.status(1, now).clock_jumps == 1);
        if (by < 0) {
            CHECK(d.tracker.time().went_back() == DetectorTime::Back::common_reset);
            CHECK(d.tracker.status(now).behind_watermark);
            d.tracker.follow_reset(now);
        } else {
            CHECK(takes(third, there + 2 * ms));
        }
        CHECK(d.status(1, now).state == SourceState::active);
        CHECK(takes(d.send(1, there + 3 * ms, there + 4 * ms, 90, now), there + 3 * ms));
        CHECK(d.tracker.watermark(now, 0) == there + 3 * ms - usual_options().max_disorder - 100);
        CHECK_FALSE(d.tracker.status(now).behind_watermark);
    }
    SECTION("not confirmed: back to where it was") {
        CHECK(run(d, {1}, start + 52 * ms, start + 60 * ms));
        CHECK(rejected(d.send(1, there, there + ms, 90, now)));
        Verdict last = d.send(1, there + ms, there + 2 * ms, 90, now);
        CHECK(rejected(last));
        CHECK(last.open);
        CHECK(d.status(1, now).clock_jumps == 0);
        CHECK(run(d, {1}, start + 60 * ms, start + 61 * ms));
        petacq::net::Datagram datagram;
        datagram.first_time = there + ms;
        datagram.last_time = there + 2 * ms;
        datagram.timed_frames = 90;
        d.tracker.reconsider(datagram, last);
        CHECK(rejected(last));
        CHECK_FALSE(last.open);
        d.tracker.refuse_open(last.source);
        CHECK(d.tracker.totals().jumped_datagrams == 1);
    }
    SECTION("datagrams that do not agree confirm nothing") {
        for (std::uint64_t i = 1; i < 20; ++i) {
            CHECK(rejected(d.send(1, there + i * 5'000 * ms, there + i * 5'000 * ms, 90, now)));
        }
        CHECK(d.tracker.watermark(now, 0) == before);
    }
}

TEST_CASE("a board that is reset does not hold the others, and is late until it is back", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2}, start, start + 50 * ms);
    for (std::uint64_t t = 0; t < 50 * ms; t += ms) {
        d.send(1, t, t + ms, 90, host(start + 50 * ms + t));
        d.tick(2, start + 50 * ms + t);
    }
    const std::int64_t now = host(start + 100 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 99 * ms - o.max_disorder - o.max_offset);
    CHECK(d.status(1, now).state == SourceState::lagging);
    CHECK(d.status(1, now).clock_jumps == 1);
    CHECK(d.status(2, now).state == SourceState::active);
    // Its clock is corrected: within max_jump of the others no confirmation is needed.
    CHECK(run(d, {1, 2}, start + 100 * ms, start + 120 * ms));
    CHECK(d.status(1, now).state == SourceState::active);
    CHECK(d.tracker.watermark(host(start + 120 * ms), 0) == start + 119 * ms - o.max_disorder - o.max_offset);
}

TEST_CASE("a common reset of all boards is followed once the watermark is restarted", "[tracking]") {
    const std::size_t count = GENERATE(std::size_t{2}, std::size_t{3}, std::size_t{8});
    const auto o = usual_options();
    Detector d(o);
    std::vector<std::uint16_t> ids;
    for (std::size_t i = 0; i < count; ++i)
        ids.push_back(static_cast<std::uint16_t>(i));
    run(d, ids, start, start + 50 * ms);
    for (std::uint64_t t = 0; t < 50 * ms; t += ms) {
        for (const auto id : ids)
            d.send(id, t, t + ms, 90, host(start + 50 * ms + t));
    }
    const std::int64_t now = host(start + 100 * ms);
    // No source sends earlier frames from here on.
    CHECK(d.tracker.watermark(now, 0) == start + 50 * ms + 1 + o.max_offset + o.flush_reach);
    CHECK(d.tracker.status(now).behind_watermark);
    CHECK(d.tracker.totals().clock_jumps == count);
    CHECK(d.tracker.time().went_back() == DetectorTime::Back::common_reset);
    d.tracker.follow_reset(now);
    for (const auto id : ids)
        CHECK(d.status(id, now).state == SourceState::active);
    CHECK(d.tracker.watermark(now, 0) == 49 * ms - o.max_disorder - o.max_offset);
    CHECK_FALSE(d.tracker.status(now).behind_watermark);
}

TEST_CASE("a source that jumps ahead is kept out until the others get there", "[tracking]") {
    const auto o = usual_options();
    const std::size_t others = GENERATE(std::size_t{1}, std::size_t{4});
    const std::uint64_t ahead = GENERATE(std::uint64_t{1500 * ms}, std::uint64_t{60'000 * ms});
    CAPTURE(others, ahead);
    Detector d(o);
    std::vector<std::uint16_t> ids;
    for (std::size_t i = 0; i < others; ++i)
        ids.push_back(static_cast<std::uint16_t>(10 + i));
    run(d, ids, start, start + 10 * ms);
    run(d, {1}, start, start + 10 * ms);
    for (std::uint64_t t = start + 10 * ms; t < start + 100 * ms; t += ms) {
        CHECK(rejected(d.send(1, t + ahead, t + ahead + ms, 90, host(t))));
        CHECK(run(d, ids, t, t + ms));
        CHECK(d.tracker.watermark(host(t), 0) <= t);
    }
    std::int64_t now = host(start + 100 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 99 * ms - o.max_disorder - o.max_offset);
    CHECK(d.status(1, now).state == SourceState::leading);
    CHECK(d.status(ids[0], now).state == SourceState::active);
    // The others (whose clocks were wrong) follow, step by step.
    for (std::uint64_t t = start + 100 * ms; t < start + 100 * ms + ahead; t += 400 * ms) {
        now = host(t);
        for (const auto id : ids)
            d.send(id, t, t + ms, 90, now);
        d.tracker.watermark(now, 0);
    }
    const std::uint64_t there = start + 100 * ms + ahead;
    CHECK(takes(d.send(1, there, there + ms, 90, now), there));
    CHECK(d.status(1, now).state == SourceState::active);
}

TEST_CASE("of three sources one cannot run away by creeping", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2, 3}, start, start + 10 * ms);
    std::uint64_t crept = start + 10 * ms;
    for (std::uint64_t t = start + 10 * ms; t < start + 100 * ms; t += ms, crept += 100 * ms) {
        d.send(1, crept, crept + ms, 90, host(t));
        CHECK(run(d, {2, 3}, t, t + ms));
        CHECK(d.tracker.watermark(host(t), 0) <= t);
    }
    CHECK(d.status(1, host(start + 100 * ms)).state == SourceState::leading);
}

TEST_CASE("a first datagram far from what the others agree on needs confirmation", "[tracking]") {
    const auto o = usual_options();
    const std::uint64_t elsewhere = GENERATE(std::uint64_t{5 * ms}, start + 50'000 * ms);
    Detector d(o);
    run(d, {1, 2}, start, start + 20 * ms);
    const std::int64_t now = host(start + 20 * ms);
    CHECK(rejected(d.send(3, elsewhere, elsewhere + ms, 90, now)));
    CHECK(rejected(d.send(3, elsewhere + ms, elsewhere + 2 * ms, 90, now)));
    const Verdict third = d.send(3, elsewhere + 2 * ms, elsewhere + 3 * ms, 90, now);
    CHECK(rejected(third) == (elsewhere > start));  // rejected while it is ahead of the others
    CHECK(d.status(3, now).clock_jumps == 0);
    CHECK(d.tracker.watermark(now, 0) == start + 19 * ms - o.max_disorder - o.max_offset);
}

TEST_CASE("a board with a wrong clock that comes first is outvoted by two others", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    for (std::uint64_t t = 0; t < 50 * ms; t += ms) {
        const std::uint64_t wrong = start + 90'000 * ms + t;
        d.send(1, wrong, wrong + ms, 90, host(start + t));
        d.tick(2, start + t);
        d.tick(3, start + t);
    }
    const std::int64_t now = host(start + 50 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 49 * ms - o.max_disorder - o.max_offset);
    CHECK(d.status(1, now).state == SourceState::leading);
}

TEST_CASE("after a pause of all, a jumped source that is back first does not take the others along",
          "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2, 3, 4}, start, start + 10 * ms);
    for (std::uint64_t t = start + 10 * ms; t < start + 50 * ms; t += ms) {
        d.send(1, t + 60'000 * ms, t + 60'001 * ms, 90, host(t));
        run(d, {2, 3, 4}, t, t + ms);
    }
    const std::uint64_t back = start + 700 * ms;
    for (std::uint64_t t = back; t < back + 5 * ms; t += ms) {
        CHECK(rejected(d.send(1, t + 60'000 * ms, t + 60'001 * ms, 90, host(t))));
        CHECK(d.tracker.watermark(host(t), 0) < start + 51 * ms);
    }
    CHECK(run(d, {2, 3, 4}, back + 5 * ms, back + 50 * ms));
    CHECK(d.tracker.watermark(host(back + 50 * ms), 0) == back + 49 * ms - o.max_disorder - o.max_offset);
    // Silent sources keep their weight, however long the pause.
    for (std::uint64_t t = back + 50 * ms; t < back + 6'000 * ms; t += 10 * ms) {
        d.send(1, t + 60'000 * ms, t + 60'010 * ms, 90, host(t));
        d.tracker.watermark(host(t), 0);
    }
    CHECK(d.status(1, host(back + 6'000 * ms)).state == SourceState::leading);
    CHECK(run(d, {2, 3, 4}, back + 6'000 * ms, back + 6'050 * ms));
}

TEST_CASE("a pause of all boards by more than max_lag, and less than the timeout, costs no frame",
          "[tracking]") {
    TrackerOptions o = usual_options();
    o.source_timeout_ns = 5'000 * host_ms;
    Detector d(o);
    std::vector<std::uint16_t> boards;
    for (std::uint16_t id = 1; id <= 48; ++id)
        boards.push_back(id);
    // One board after the other.
    const auto send = [&](std::uint64_t from, std::uint64_t to) {
        std::size_t refused = 0;
        for (std::uint64_t t = from; t < to; t += ms / 10) {
            const std::uint16_t id = boards[t / (ms / 10) % boards.size()];
            if (!takes(d.send(id, t, t + ms, 90, host(t + ms)), t)) ++refused;
        }
        return refused;
    };
    send(start, start + 50 * ms);
    const std::uint64_t there = start + 50 * ms + o.max_lag + 500 * ms;
    CHECK(send(there, there + 50 * ms) == 0);
    CHECK(d.tracker.totals().jumped_datagrams == 0);
}
