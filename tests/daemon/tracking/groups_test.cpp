// A group of trains is accounted for as if its datagrams had come one by one.
#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

struct Event {
    net::Datagram datagram;
    std::int64_t now = 0;
};

/// Datagrams of four boards as they arrive: mostly in order and several at once, with the faults of a network
/// and of boards between them.
std::vector<Event> arrivals(Random& random) {
    constexpr std::size_t board_count = 4;
    std::vector<std::uint64_t> number(board_count, 7);
    std::vector<std::uint64_t> time(board_count, start);
    std::vector<Event> events;
    std::int64_t now = host(start);
    for (int burst = 0; burst < 600; ++burst) {
        const std::size_t board = random.below(board_count);
        now += static_cast<std::int64_t>(random.below(2 * ms));
        if (random.one_in(300)) now += 700 * host_ms;
        if (random.one_in(200)) time[board] += random.below(3000 * ms);
        if (random.one_in(200)) time[board] -= std::min(time[board], random.below(1500 * ms));
        if (random.one_in(100)) number[board] += random.below(200);
        if (random.one_in(100)) number[board] -= random.below(50);
        const std::uint64_t most = 1 + random.below(8);
        for (std::uint64_t i = 0; i < most; ++i) {
            Event e;
            e.now = now;
            net::Datagram& d = e.datagram;
            d.sequence = number[board]++;
            d.frames = random.one_in(40) ? 1 : 20;
            d.timed_frames = random.one_in(60) ? std::uint16_t{0} : static_cast<std::uint16_t>(d.frames);
            if (d.timed_frames > 0) {
                d.first_time = time[board];
                d.last_time = time[board] + random.below(ms);
                if (random.one_in(200)) d.last_time = random.next();
            }
            time[board] += random.below(ms / 2);
            d.bytes = d.frames * 16 + 16;
            d.address = 0x7F000001;
            d.port = static_cast<std::uint16_t>(10000 + board);
            d.source = static_cast<std::uint16_t>(board + 1);
            d.flags = random.one_in(2000) ? net::flag_end_of_stream : std::uint8_t{0};
            d.first_bdm = static_cast<std::uint16_t>(random.below(8));
            d.last_bdm = static_cast<std::uint16_t>(random.below(8));
            d.arrival_ns = now;
            if (random.one_in(150) && !events.empty()) d = events[random.below(events.size())].datagram;
            d.arrival_ns = now;
            events.push_back(e);
        }
    }
    return events;
}

std::vector<std::uint32_t> modules_in(const net::Modules& set) {
    std::vector<std::uint32_t> all;
    set.each([&](std::uint32_t bdm) { all.push_back(bdm); });
    return all;
}

auto facts(const daemon::SourceStatus& s) {
    const daemon::SequenceCounts& c = s.sequence;
    return std::tuple(
        std::tuple(s.id, s.address, s.port, s.state, s.datagrams, s.frames, s.lost, s.invalid_frames,
                   s.unnumbered, s.jumped_datagrams, s.clock_jumps, s.steps_back, s.progress, s.skew),
        std::tuple(s.first_seen, s.last_seen, modules_in(s.bdms), c.accepted, c.duplicate, c.repeated,
                   c.reordered, c.restarted, c.new_streams, c.stray, c.recovered));
}

}  // namespace

TEST_CASE("groups give the state and the verdicts that their datagrams give one by one", "[tracking]") {
    std::uint64_t in_groups = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        daemon::TrackerOptions options = usual_options();
        if (seed % 2 == 1) options.expected = {1, 2, 3, 4};
        daemon::SourceTracker single(options);
        daemon::SourceTracker together(options);
        const std::vector<Event> events = arrivals(random);
        net::BatchPool pool(1, std::size_t{1} << 16, net::make_host_memory({false, false}));
        net::Batch& batch = *pool.take();
        for (std::size_t i = 0; i < events.size();) {
            // As a batch holds them: back to back.
            batch.clear();
            std::size_t end = i;
            std::vector<std::uint32_t> offsets;
            const std::size_t most = 1 + random.below(8);
            for (; end < events.size() && end - i < most && events[end].now == events[i].now; ++end) {
                net::Datagram d = events[end].datagram;
                d.offset = static_cast<std::uint32_t>(batch.used);
                offsets.push_back(d.offset);
                batch.used += d.bytes;
                batch.datagrams.push_back(d);
                batch.join_last();
            }
            const std::int64_t now = events[i].now;
            net::each_group(batch, batch.datagrams, [&](const net::Group& group) {
                std::vector<daemon::Verdict> verdicts;
                const bool whole = !group.members().empty() && together.observe_group(group, now, verdicts);
                std::size_t k = 0;
                group.each([&](const net::Datagram& d) {
                    const daemon::Verdict expected = single.observe(events[i].datagram, now);
                    const daemon::Verdict v = whole ? verdicts[group.members()[k].train]
                                                    : together.observe(events[i].datagram, now);
                    REQUIRE(d.sequence == events[i].datagram.sequence);
                    REQUIRE(d.source == events[i].datagram.source);
                    REQUIRE(d.offset == offsets[i - (end - offsets.size())]);
                    in_groups += whole ? 1 : 0;
                    ++i;
                    ++k;
                    REQUIRE(v.use == expected.use);
                    REQUIRE(std::tuple(v.time_low, v.time_high, v.source, v.lost, v.loss_known) ==
                            std::tuple(expected.time_low, expected.time_high, expected.source, expected.lost,
                                       expected.loss_known));
                });
            });
            REQUIRE(i == end);
            if (random.one_in(3)) REQUIRE(together.watermark(now, 0) == single.watermark(now, 0));
            REQUIRE(together.time().went_back() == single.time().went_back());
            if (single.time().went_back() != daemon::DetectorTime::Back::no) {
                single.follow_reset(now);
                together.follow_reset(now);
            }
            REQUIRE(together.time().earliest() == single.time().earliest());
            REQUIRE(together.time().newest() == single.time().newest());
        }
        const auto a = single.status(events.back().now);
        const auto b = together.status(events.back().now);
        REQUIRE(a.sources.size() == b.sources.size());
        REQUIRE(a.reference == b.reference);
        for (std::size_t s = 0; s < a.sources.size(); ++s)
            REQUIRE(facts(a.sources[s]) == facts(b.sources[s]));
        pool.put(&batch);
    }
    CHECK(in_groups > 10'000);
}
