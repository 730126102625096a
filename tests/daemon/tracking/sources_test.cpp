// Which sources the watermark waits for, and which senders are sources.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
namespace net = petacq::net;

TEST_CASE("the watermark follows the slowest source", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2, 3}, start, start + 100 * ms);
    d.tick(1, start + 100 * ms);
    d.tick(2, start + 100 * ms);
    const std::int64_t now = host(start + 101 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 99 * ms - o.max_disorder - o.max_offset);
    const auto status = d.tracker.status(now);
    REQUIRE(status.holding);
    CHECK(status.sources[*status.holding].id == 3);
    CHECK(status.reference == start + 100 * ms);
    CHECK(d.status(3, now).skew == -static_cast<std::int64_t>(ms));
    CHECK(d.status(1, now).skew == 0);
    CHECK(d.status(3, now).frames == 100 * 90);
    CHECK_FALSE(status.behind_watermark);

    // Skew compares sources with each other, not with an older watermark.
    d.tick(3, start + 100 * ms);
    run(d, {1, 2, 3}, start + 101 * ms, start + 120 * ms);
    for (const std::uint16_t id : std::vector<std::uint16_t>{1, 2, 3})
        CHECK(d.status(id, host(start + 121 * ms)).skew == 0);
}

TEST_CASE("the watermark never goes back and never below zero", "[tracking]") {
    const auto o = options_for_one();
    Detector d(o);
    d.tick(1, 0);
    CHECK(d.tracker.watermark(0, 0) == 0);
    run(d, {1}, ms, 50 * ms);
    const auto high = d.tracker.watermark(host(50 * ms), 0);
    CHECK(high == 49 * ms - o.max_disorder - o.max_offset);
    d.tick(2, 20 * ms);  // appears late and behind
    CHECK(d.tracker.watermark(host(50 * ms), 0) == high);
}

TEST_CASE("a duplicate is discarded and counted once", "[tracking]") {
    Detector d(usual_options());
    CHECK(d.send_numbered(7, 100, start, start + ms, 90, 0).use);
    CHECK(d.send_numbered(7, 101, start + ms, start + 2 * ms, 90, 0).use);
    CHECK_FALSE(d.send_numbered(7, 101, start + ms, start + 2 * ms, 90, 0).use);
    CHECK_FALSE(d.send_numbered(7, 100, start, start + ms, 90, 0).use);
    d.send_numbered(7, 104, start + 4 * ms, start + 5 * ms, 90, 0);
    const auto totals = d.tracker.totals();
    CHECK(totals.accepted == 3);
    CHECK(totals.duplicate == 2);
    CHECK(totals.lost == 2);
    CHECK(d.status(7, 0).frames == 270);
    CHECK(d.status(7, 0).lost == std::uint64_t{2});
}

TEST_CASE("a silent source holds the watermark until the timeout and not longer", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2}, start, start + 20 * ms);  // the last one at host time start + 20 ms
    run(d, {1}, start + 20 * ms, start + 521 * ms);
    const std::uint64_t held = start + 19 * ms - o.max_disorder - o.max_offset;
    const std::int64_t silent_from = host(start + 20 * ms) + o.source_timeout_ns;
    CHECK(d.tracker.watermark(silent_from - 1, 0) == held);
    CHECK(d.status(2, silent_from - 1).state == SourceState::active);
    CHECK(d.tracker.watermark(silent_from, 0) == start + 520 * ms - o.max_disorder - o.max_offset);
    CHECK(d.status(2, silent_from).state == SourceState::silent);
    // Level with the others: not late, and holding the watermark again.
    CHECK(run(d, {1, 2}, start + 521 * ms, start + 530 * ms));
    run(d, {1}, start + 530 * ms, start + 600 * ms);
    CHECK(d.tracker.watermark(host(start + 600 * ms), 0) == start + 529 * ms - o.max_disorder - o.max_offset);
}

TEST_CASE("heartbeats do not keep a source from being silent", "[tracking]") {
    Detector d(usual_options());
    run(d, {1, 2}, start, start + 20 * ms);
    for (std::uint64_t t = start + 20 * ms; t < start + 600 * ms; t += ms) {
        CHECK(d.send(2, 0, 0, 0, host(t)).use);
        d.tick(1, t);
    }
    const std::int64_t now = host(start + 600 * ms);
    CHECK(d.tracker.watermark(now, 0) > start + 500 * ms);
    CHECK(d.status(2, now).state == SourceState::silent);
    CHECK(d.status(2, now).datagrams == 600);
    CHECK(d.status(2, now).last_seen == host(start + 599 * ms));
}

TEST_CASE("a source that lags too much stops holding the watermark", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2, 3}, start, start + 20 * ms);
    std::uint64_t slow = start + 20 * ms;
    std::uint64_t t = start + 20 * ms;
    // Source 3 falls behind by half a millisecond per millisecond.
    for (; t < start + 1990 * ms; t += ms, slow += ms / 2) {
        run(d, {1, 2}, t, t + ms);
        d.send(3, slow, slow + ms / 2, 90, host(t));
    }
    CHECK(d.tracker.watermark(host(t), 0) == slow - ms / 2 - o.max_disorder - o.max_offset);
    CHECK(d.status(3, host(t)).state == SourceState::active);
    for (; t < start + 2100 * ms; t += ms, slow += ms / 2) {
        run(d, {1, 2}, t, t + ms);
        d.send(3, slow, slow + ms / 2, 90, host(t));
    }
    CHECK(d.tracker.watermark(host(t), 0) == t - ms - o.max_disorder - o.max_offset);
    CHECK(d.status(3, host(t)).state == SourceState::lagging);
    CHECK(*d.status(3, host(t)).skew < -static_cast<std::int64_t>(o.max_lag));
}

TEST_CASE("of two sources the one behind is the one that lags", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2}, start, start + 20 * ms);
    for (std::uint64_t t = start + 20 * ms; t < start + 1100 * ms; t += ms) {
        CHECK(takes(d.tick(1, t), t));
        d.send(2, start + 20 * ms, start + 20 * ms + 10, 90, host(t));
    }
    const std::int64_t now = host(start + 1100 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 1099 * ms - o.max_disorder - o.max_offset);
    CHECK(d.status(2, now).state == SourceState::lagging);
}

TEST_CASE("an ended source lets go at once, with a gap only after the timeout", "[tracking]") {
    const bool gap = GENERATE(false, true);
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2}, start, start + 20 * ms);
    if (gap) ++d.sequence[2];
    d.send(2, start + 20 * ms, start + 21 * ms, 90, host(start + 21 * ms), net::flag_end_of_stream);
    run(d, {1}, start + 20 * ms, start + 100 * ms);
    const std::int64_t now = host(start + 100 * ms);
    const std::uint64_t held = start + 20 * ms - o.max_disorder - o.max_offset;
    const std::uint64_t released = start + 99 * ms - o.max_disorder - o.max_offset;
    CHECK(d.tracker.watermark(now, 0) == (gap ? held : released));
    CHECK(d.status(2, now).state == SourceState::ended);
    CHECK(d.tracker.totals().end_of_stream == 1);
    if (gap) {
        SECTION("the missing one comes") {
            d.send_numbered(2, 20, start + 19 * ms, start + 20 * ms, 90, now);
            CHECK(d.tracker.watermark(now, 0) == released);
        }
        SECTION("it never comes") {
            run(d, {1}, start + 100 * ms, start + 521 * ms);
            CHECK(d.tracker.watermark(host(start + 521 * ms), 0) > released);
            CHECK(d.tracker.totals().lost == 1);
        }
    }
}

TEST_CASE("when everybody is silent or has ended, everything received is decided", "[tracking]") {
    const bool ended = GENERATE(false, true);
    const auto o = usual_options();
    Detector d(o);
    run(d, {1, 2}, start, start + 20 * ms);
    const std::int64_t last = host(start + 20 * ms);
    if (ended) {
        for (const std::uint16_t id : {std::uint16_t{1}, std::uint16_t{2}}) {
            d.send(id, 0, 0, 0, last, net::flag_end_of_stream);
        }
    } else {
        CHECK(d.tracker.watermark(last + o.source_timeout_ns - 1, 0) < start + 20 * ms);
    }
    const std::int64_t now = ended ? last : last + o.source_timeout_ns;
    SECTION("past the newest frame") {
        CHECK(d.tracker.watermark(now, 0) == start + 20 * ms + 1 + o.max_offset + o.flush_reach);
    }
    SECTION("past the newest pending single") {
        const std::uint64_t pending = start + 20 * ms + 50;
        CHECK(d.tracker.watermark(now, pending) == pending + 1 + o.max_offset + o.flush_reach);
    }
    SECTION("but not to a wild one") {
        CHECK(d.tracker.watermark(now, start + 1'000'000 * ms) < start + 3'000 * ms);
    }
}

TEST_CASE("a single datagram decides nothing, unless nothing else is to come", "[tracking]") {
    const auto o = options_for_one();
    Detector d(o);
    CHECK(takes(d.send(1, start, start, 1, 0), start));
    CHECK(d.tracker.watermark(100 * o.source_timeout_ns, start) == 0);
    d.tracker.establish_now(100 * o.source_timeout_ns);
    CHECK_FALSE(d.tracker.time().established());
}

TEST_CASE("a source that is alone begins time when it has waited for others", "[tracking]") {
    auto o = usual_options();
    std::int64_t timeouts = 1;
    SECTION("nobody else is known") {}
    SECTION("others are expected") {
        o.expected = {1, 2, 3};
        timeouts = 10;
    }
    Detector d(o);
    for (std::uint64_t t = start; t < start + 6'000 * ms; t += ms) {
        CHECK(takes(d.tick(1, t), t));
        const bool begun = host(t) >= host(start + 2 * ms) + timeouts * o.source_timeout_ns;
        REQUIRE((d.tracker.watermark(host(t + ms), 0) > 0) == begun);
    }
}

TEST_CASE("a stop does not wait for other sources", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    run(d, {1}, start, start + 50 * ms);
    d.tracker.establish_now(host(start + 50 * ms));
    CHECK(d.tracker.watermark(host(start + 50 * ms), 0) == start + 49 * ms - o.max_disorder - o.max_offset);
}

TEST_CASE("frames that are not valid do not keep a source from being silent", "[tracking]") {
    Detector d(usual_options());
    run(d, {1, 2}, start, start + 20 * ms);
    for (std::uint64_t t = start + 20 * ms; t < start + 600 * ms; t += ms) {
        net::Datagram invalid;
        invalid.sequence = d.sequence[2]++;
        invalid.source = 2;
        invalid.frames = 90;
        CHECK(d.tracker.observe(invalid, host(t)).use);
        d.tick(1, t);
    }
    const std::int64_t now = host(start + 600 * ms);
    CHECK(d.tracker.watermark(now, 0) > start + 500 * ms);
    CHECK(d.status(2, now).state == SourceState::silent);
}

TEST_CASE("with nothing received the watermark stays at zero", "[tracking]") {
    Detector d(usual_options());
    CHECK(d.tracker.watermark(1'000'000 * host_ms, 0) == 0);
    d.send(1, 0, 0, 0, 0);
    CHECK(d.tracker.watermark(1'000'000 * host_ms, 0) == 0);
}

TEST_CASE("the second stream after an end of stream loses nothing", "[tracking]") {
    const auto o = usual_options();
    Detector d(o);
    const std::uint64_t second = GENERATE(std::uint64_t{0}, std::uint64_t{7'000'000 * ms});
    run(d, {1, 2}, start, start + 20 * ms);
    for (const std::uint16_t id : {std::uint16_t{1}, std::uint16_t{2}}) {
        d.send(id, start + 20 * ms, start + 20 * ms, 1, host(start + 20 * ms), net::flag_end_of_stream);
    }
    d.tracker.watermark(host(start + 20 * ms), 0);
    d.tracker.restart_watermark(host(start + 20 * ms));
    d.sequence.clear();
    for (std::uint64_t t = 0; t < 50 * ms; t += ms) {
        for (const std::uint16_t id : {std::uint16_t{1}, std::uint16_t{2}}) {
            CHECK(takes(d.send(id, second + t, second + t + ms, 90, host(start + 21 * ms + t)), second + t));
        }
    }
    const auto totals = d.tracker.totals();
    CHECK(totals.duplicate == 0);
    CHECK(totals.lost == 0);
    CHECK(totals.restarted == 2);
    CHECK(totals.jumped_datagrams == 0);
    const std::uint64_t low = second + 49 * ms - o.max_disorder - o.max_offset;
    CHECK(d.tracker.watermark(host(start + 71 * ms), 0) == low);
}

TEST_CASE("expected sources are waited for, but not longer than the timeout", "[tracking]") {
    auto o = usual_options();
    o.expected = {3, 1, 2};
    Detector d(o);
    CHECK(d.tracker.watermark(99'000 * host_ms, 0) == 0);
    run(d, {1, 2}, start, start + 100 * ms);
    CHECK(d.tracker.watermark(host(start + 100 * ms), 0) == 0);
    CHECK(d.status(3, host(start + 100 * ms)).state == SourceState::silent);
    CHECK_FALSE(d.status(3, host(start + 100 * ms)).last_seen);
    SECTION("the third comes") {
        for (std::uint64_t i = 0; i < 3; ++i)
            d.tick(3, start + (60 + i) * ms);
        CHECK(d.tracker.watermark(host(start + 100 * ms), 0) ==
              start + 62 * ms - o.max_disorder - o.max_offset);
    }
    SECTION("it does not come") {
        run(d, {1, 2}, start + 100 * ms, start + 600 * ms);
        const std::int64_t first = host(start + 3 * ms);  // two sources are proven
        CHECK(d.tracker.watermark(first + o.source_timeout_ns - 1, 0) == 0);
        CHECK(d.tracker.watermark(first + o.source_timeout_ns, 0) ==
              start + 599 * ms - o.max_disorder - o.max_offset);
    }
}

TEST_CASE("bare framing knows sources by sender, and claims nothing about loss", "[tracking]") {
    auto o = usual_options();
    o.framing = net::Framing::bare;
    Detector d(o);
    CHECK(run(d, {1, 2, 3}, start, start + 50 * ms));
    run(d, {1, 3}, start + 50 * ms, start + 60 * ms);
    const std::int64_t now = host(start + 60 * ms);
    CHECK(d.tracker.watermark(now, 0) == start + 49 * ms - o.max_disorder - o.max_offset);
    const auto status = d.tracker.status(now);
    REQUIRE(status.sources.size() == 3);
    CHECK(status.sources[*status.holding].port == 10002);
    CHECK(status.sources[0].address == 0x7F000001);
    for (const auto& s : status.sources)
        CHECK_FALSE(s.lost);
    CHECK(d.tracker.totals().accepted == 170);
    CHECK(d.tracker.totals().duplicate == 0);
}

TEST_CASE("there may be many sources, up to a bound", "[tracking]") {
    auto o = usual_options();
    o.framing = GENERATE(net::Framing::sequenced, net::Framing::bare);
    Detector d(o);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const auto id = static_cast<std::uint16_t>(i);
        bool used = true;
        for (std::uint64_t time = start; time < start + 3 * ms; time += ms)
            used = d.tick(id, time).use && used;
        CHECK(used == (i < SourceTable::max_sources));
    }
    CHECK(d.tracker.totals().too_many_sources == 3 * (5000 - SourceTable::max_sources));
    CHECK(d.tracker.totals().accepted == 3 * SourceTable::max_sources);
    CHECK(takes(d.tick(4095, start + 3 * ms), start + 3 * ms));
    CHECK(d.status(4095, 0).datagrams == 4);
}

TEST_CASE("invalid expected ids are refused", "[tracking]") {
    auto o = usual_options();
    o.expected = {4, 5, 4};
    CHECK_THROWS_AS(SourceTracker(o), std::invalid_argument);
    o.expected.clear();
    for (std::uint32_t i = 0; i <= SourceTable::max_sources; ++i) {
        o.expected.push_back(static_cast<std::uint16_t>(i));
    }
    CHECK_THROWS_AS(SourceTracker(o), std::invalid_argument);
    o.expected.pop_back();
    CHECK(SourceTracker(o).status(0).sources.size() == SourceTable::max_sources);
}

TEST_CASE("states have their words", "[tracking]") {
    CHECK(std::string(name_of(SourceState::active)) == "active");
    CHECK(std::string(name_of(SourceState::silent)) == "silent");
    CHECK(std::string(name_of(SourceState::lagging)) == "lagging");
    CHECK(std::string(name_of(SourceState::leading)) == "leading");
    CHECK(std::string(name_of(SourceState::ended)) == "ended");
    CHECK(std::string(name_of(SourceState::jumping)) == "jumping");
}

TEST_CASE("copies are discarded, also when a stream is sent again or after a restart", "[tracking]") {
    Detector d(usual_options());
    const auto send_stream = [&](std::uint64_t from, std::uint64_t time) {
        std::size_t used = 0;
        for (std::uint64_t i = 0; i < 100; ++i) {
            const std::uint8_t flags = i == 99 ? net::flag_end_of_stream : 0;
            const std::uint64_t t = time + i * ms;
            used += d.send_numbered(1, from + i, t, t + ms, 90, host(t), flags).use ? 1 : 0;
        }
        return used;
    };
    CHECK(send_stream(0, start) == 100);
    CHECK(send_stream(0, start) == 0);
    CHECK(d.tracker.totals().repeated == 100);
    CHECK(d.tracker.totals().duplicate == 0);
    CHECK(send_stream(0, start + 200 * ms) == 100);
    // A copy from before the restart of the numbers.
    CHECK_FALSE(d.send_numbered(1, 50, start + 50 * ms, start + 51 * ms, 90, host(start + 400 * ms)).use);
    CHECK(d.tracker.totals().repeated == 101);
    // Detector time starts again: the operator may send the same stream for another run.
    d.tracker.allow_repetition(host(start + 60'000 * ms));
    d.tracker.restart_watermark(host(start + 60'000 * ms));
    CHECK(send_stream(0, start) == 100);
    CHECK(d.tracker.totals().restarted == 2);
    CHECK(d.tracker.totals().lost == 0);
}

TEST_CASE("a stream that is sent again is a copy while another source sends", "[tracking]") {
    Detector d(usual_options());
    const auto send_stream = [&] {
        std::size_t used = 0;
        for (std::uint64_t i = 0; i < 100; ++i) {
            const std::uint8_t flags = i == 99 ? net::flag_end_of_stream : 0;
            const std::uint64_t t = start + i * ms;
            used += d.send_numbered(1, i, t, t + ms, 90, host(t), flags).use ? 1 : 0;
            d.tick(2, t);
        }
        return used;
    };
    CHECK(send_stream() == 100);
    d.tracker.allow_repetition(host(start + 100 * ms));
    CHECK(send_stream() == 0);
    d.tracker.allow_repetition(host(start + 60'000 * ms));
    CHECK(send_stream() == 100);
}
