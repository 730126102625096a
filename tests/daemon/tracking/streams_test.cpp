// Simulated detectors: sources with skew, loss, duplicates and reordering. No accepted frame may lie below a
// watermark published before its arrival, and the watermark must keep up.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint64_t streams_from = 7'000'000 * ms;
constexpr std::uint64_t longest = 2 * ms;  ///< detector time in one datagram

struct Plan {
    std::uint64_t seed = 1;
    std::size_t sources = 4;
    std::uint64_t duration = 1500 * ms;
    std::uint64_t start_spread = 0;  ///< sources begin within this of each other
    std::uint64_t skew = 0;          ///< constant delay of a source, at most
    std::uint64_t jitter = 0;        ///< delay of a datagram, at most: reorders
    std::uint64_t one_lost_in = 0;   ///< 0: never
    std::uint64_t one_doubled_in = 0;
    std::uint64_t one_wild_in = 0;    ///< datagrams with one wild end
    std::uint64_t one_paused_in = 0;  ///< sources that pause for a second
    bool bare = false;
    bool end = false;  ///< with an end of stream
};

struct Arrival {
    std::uint64_t at = 0;  ///< host time
    std::uint16_t id = 0;
    std::uint64_t number = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t frames = 1;
    bool end = false;
    std::uint64_t wild = 0;  ///< bits to flip
    bool wild_first = false;
};

std::vector<Arrival> make_stream(const Plan& plan) {
    Random random(plan.seed);
    std::vector<Arrival> stream;
    for (std::size_t s = 0; s < plan.sources; ++s) {
        const std::uint64_t delay = random.below(plan.skew + 1);
        const std::uint64_t begin = streams_from + random.below(plan.start_spread + 1);
        const bool pauses = plan.one_paused_in != 0 && s > 0 && random.one_in(plan.one_paused_in);
        const std::uint64_t pause_at = begin + random.below(plan.duration / 2);
        std::uint64_t number = random.next();
        for (std::uint64_t t = begin; t < streams_from + plan.duration; ++number) {
            Arrival a;
            a.id = static_cast<std::uint16_t>(s);
            a.number = number;
            const bool single = random.one_in(10);
            const std::uint64_t length = 1 + random.below(longest);
            a.frames = single ? 1 : static_cast<std::uint32_t>(2 + random.below(500));
            a.first = t;
            a.last = single ? t : t + length;
            t += length;
            a.at = t + delay + random.below(plan.jitter + 1);
            a.end = plan.end && t >= streams_from + plan.duration;
            if (pauses && a.first > pause_at && a.first < pause_at + 1000 * ms) continue;
            if (plan.one_wild_in != 0 && random.one_in(plan.one_wild_in)) {
                a.wild = std::uint64_t{1} << random.below(64);
                a.wild_first = random.one_in(2);
            }
            if (plan.one_doubled_in != 0 && random.one_in(plan.one_doubled_in)) {
                stream.push_back(a);
                stream.back().at += random.below(plan.jitter + 1);
            }
            if (plan.one_lost_in != 0 && random.one_in(plan.one_lost_in) && !a.end) continue;
            stream.push_back(a);
        }
    }
    std::stable_sort(stream.begin(), stream.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    return stream;
}

struct Outcome {
    std::vector<std::uint64_t> watermarks;  ///< one per 17 arrivals
    std::uint64_t late = 0;                 ///< true frame ends below the watermark
    std::uint64_t refused = 0;              ///< true frame ends outside the verdict's times
    std::uint64_t worst_delay = 0;          ///< of the watermark behind host time, with all sources present
    TrackerTotals totals;
    std::uint64_t final_watermark = 0;
    std::uint64_t newest = 0;
};

Outcome replay(const Plan& plan, const std::vector<Arrival>& stream, TrackerOptions options, bool corrupt) {
    if (plan.bare) options.framing = petacq::net::Framing::bare;
    Detector d(options);
    Outcome r;
    std::uint64_t watermark = 0;
    std::size_t count = 0;
    for (const Arrival& a : stream) {
        const auto now = static_cast<std::int64_t>(a.at);
        std::uint64_t first = a.first;
        std::uint64_t last = a.last;
        if (corrupt && a.wild != 0) {
            if (a.wild_first || a.frames == 1) first ^= a.wild;
            if (!a.wild_first || a.frames == 1) last ^= a.wild;
        }
        const Verdict v = d.send_numbered(a.id, a.number, first, last, a.frames, now,
                                          a.end ? petacq::net::flag_end_of_stream : std::uint8_t{0});
        if (v.use) {
            r.newest = std::max(r.newest, a.last);
            for (const bool at_first : {true, false}) {
                const bool flipped = corrupt && a.wild != 0 && (a.frames == 1 || a.wild_first == at_first);
                if (flipped) continue;
                const std::uint64_t t = at_first ? a.first : a.last;
                if (t - options.max_offset < watermark) ++r.late;
                if (!takes(v, t)) ++r.refused;
            }
        }
        if (++count % 17 != 0) continue;
        const std::uint64_t next = d.tracker.watermark(now, 0);
        REQUIRE(next >= watermark);
        watermark = next;
        r.watermarks.push_back(watermark);
        if (a.at > streams_from + plan.start_spread + plan.skew + plan.jitter + 20 * ms &&
            a.at < streams_from + plan.duration) {
            r.worst_delay = std::max(r.worst_delay, a.at - std::min(a.at, watermark));
        }
    }
    const std::uint64_t end = stream.back().at;
    if (plan.end && plan.one_lost_in == 0) {
        r.final_watermark = d.tracker.watermark(static_cast<std::int64_t>(end), 0);
    } else {
        r.final_watermark =
            d.tracker.watermark(static_cast<std::int64_t>(end) + options.source_timeout_ns, 0);
    }
    r.totals = d.tracker.totals();
    return r;
}

TrackerOptions options_for(const Plan& plan) {
    auto o = usual_options();
    o.max_disorder = plan.skew + plan.jitter + 2 * longest + o.max_offset;
    if (plan.sources == 1) o.expected = {0};
    return o;
}

}  // namespace

TEST_CASE("no frame is late while sources are less apart than max_disorder", "[tracking]") {
    Plan plan;
    plan.seed = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
    Random random(plan.seed + 1000);
    plan.sources = std::vector<std::size_t>{1, 2, 3, 8, 64}[random.below(5)];
    plan.start_spread = random.one_in(2) ? random.below(400 * ms) : 0;
    plan.skew = random.below(8 * ms);
    plan.jitter = random.below(5 * ms);
    plan.one_lost_in = random.one_in(2) ? 20 : 0;
    plan.one_doubled_in = random.one_in(2) ? 20 : 0;
    plan.bare = GENERATE(false, true);
    if (plan.bare) plan.one_doubled_in = 0;
    plan.end = !plan.bare;
    CAPTURE(plan.seed, plan.sources, plan.start_spread, plan.skew, plan.jitter, plan.bare);
    const auto o = options_for(plan);
    const auto stream = make_stream(plan);
    const Outcome r = replay(plan, stream, o, false);
    CHECK(r.late == 0);
    CHECK(r.refused == 0);
    CHECK(r.totals.jumped_datagrams == 0);
    CHECK(r.totals.clock_jumps == 0);
    CHECK(r.totals.stray == 0);
    CHECK(r.totals.restarted == 0);
    // The watermark is behind by its allowance and some consecutive lost datagrams, at most.
    // A sender that is alone, and not listed, waits for others first.
    if (plan.bare && plan.sources == 1) return;
    CHECK(r.worst_delay <= plan.skew + plan.jitter + o.max_disorder + o.max_offset + 12 * longest);
    CHECK(r.final_watermark == r.newest + 1 + o.max_offset + o.flush_reach);
}

TEST_CASE("64 sources that begin one after the other lose no frame", "[tracking]") {
    Plan plan;
    plan.seed = GENERATE(11, 12, 13, 14);
    plan.sources = 64;
    plan.duration = 300 * ms;
    plan.start_spread = 100 * ms;
    plan.skew = 9 * ms;
    const Outcome r = replay(plan, make_stream(plan), options_for(plan), false);
    CHECK(r.late == 0);
    CHECK(r.refused == 0);
}

TEST_CASE("sources further apart than max_disorder are in time when they are expected", "[tracking]") {
    Plan plan;
    plan.seed = GENERATE(21, 22, 23, 24);
    plan.sources = 6;
    plan.skew = 300 * ms;
    plan.jitter = 3 * ms;
    plan.one_lost_in = 50;
    auto o = options_for(plan);
    o.max_disorder -= plan.skew;
    const auto stream = make_stream(plan);
    for (std::size_t id = 0; id < plan.sources; ++id)
        o.expected.push_back(static_cast<std::uint16_t>(id));
    CHECK(replay(plan, stream, o, false).late == 0);
    // Control: without this knowledge, the test fails.
    o.expected.clear();
    CHECK(replay(plan, stream, o, false).late > 0);
}

TEST_CASE("sources that pause and come back are in time", "[tracking]") {
    Plan plan;
    plan.seed = GENERATE(31, 32, 33, 34);
    plan.sources = 8;
    plan.duration = 3000 * ms;
    plan.skew = 5 * ms;
    plan.jitter = 2 * ms;
    plan.one_paused_in = 2;
    const Outcome r = replay(plan, make_stream(plan), options_for(plan), false);
    CHECK(r.late == 0);
    CHECK(r.refused == 0);
    // A silent source holds it for no longer than the timeout.
    CHECK(r.worst_delay <= 500 * ms + 2 * (plan.skew + plan.jitter) + 20 * longest);
}

TEST_CASE("single wild frames change nothing for the others and never advance the watermark", "[tracking]") {
    Plan plan;
    plan.seed = GENERATE(41, 42, 43, 44, 45, 46);
    plan.sources = plan.seed % 2 == 0 ? 1 : 5;
    plan.skew = 4 * ms;
    plan.jitter = 2 * ms;
    plan.one_lost_in = 30;
    plan.one_wild_in = 8;
    CAPTURE(plan.seed);
    const auto o = options_for(plan);
    auto stream = make_stream(plan);
    // The first datagrams of each source stay intact: another test covers wild ones there.
    for (auto& a : stream) {
        if (a.first < streams_from + 10 * ms) a.wild = 0;
    }
    const Outcome clean = replay(plan, stream, o, false);
    const Outcome wild = replay(plan, stream, o, true);
    CHECK(wild.late == 0);
    CHECK(wild.refused == 0);
    CHECK(wild.totals.clock_jumps == 0);
    REQUIRE(wild.watermarks.size() == clean.watermarks.size());
    std::uint64_t max_ahead = 0;
    std::uint64_t max_behind = 0;
    for (std::size_t i = 0; i < clean.watermarks.size(); ++i) {
        const std::uint64_t c = clean.watermarks[i];
        const std::uint64_t w = wild.watermarks[i];
        if (w > c) max_ahead = std::max(max_ahead, w - c);
        if (c > w) max_behind = std::max(max_behind, c - w);
    }
    // With its first frame wild, a datagram's last one counts instead: true, and no more than its length
    // ahead.
    CHECK(max_ahead <= longest);
    CHECK(max_behind <= 20 * longest);
}

TEST_CASE("a detector with a datagram every few seconds loses none of them", "[tracking]") {
    TrackerOptions options = usual_options();
    options.ticks_per_ns = 1;
    Detector detector(options);
    for (std::uint64_t n = 1; n <= 50; ++n) {
        const std::uint64_t t = 3000 * ms * n;
        const auto verdict = detector.send(0, t, t + ms, 2, static_cast<std::int64_t>(t));
        CHECK(verdict.use);
        CHECK(verdict.time_low <= t);
        CHECK(t + ms <= verdict.time_high);
    }
    CHECK(detector.tracker.totals().jumped_datagrams == 0);
    CHECK(detector.tracker.totals().clock_jumps == 0);
}
