// Slots of sources: where anybody may send, no sender fills the table for ever; expected sources keep their
// places.
#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

const std::vector<std::uint16_t> boards{65'000, 65'001, 65'002, 65'003, 65'004, 65'005, 65'006, 65'007};

/// One datagram of each of so many made-up senders, at the same host time.
void made_up(Detector& d, std::uint32_t count, std::uint64_t time) {
    for (std::uint32_t id = 0; id < count; ++id)
        d.send(static_cast<std::uint16_t>(id), time, time + ms, 90, host(time));
}

}  // namespace

TEST_CASE("made-up senders do not keep the boards out of the table") {
    auto options = usual_options();
    options.framing = GENERATE(net::Framing::sequenced, net::Framing::bare);
    Detector d(options);
    made_up(d, 6'000, start);
    CHECK(d.tracker.totals().too_many_sources == 0);
    CHECK(run(d, boards, start, start + 50 * ms));
    for (const std::uint16_t id : boards) {
        CHECK(d.status(id, host(start + 50 * ms)).datagrams == 50);
        CHECK(d.status(id, host(start + 50 * ms)).first_seen == host(start + ms));
    }
    CHECK(d.tracker.status(host(start)).sources.size() == SourceTable::max_sources);
    // Nothing that was counted is forgotten.
    CHECK(d.tracker.totals().accepted == 6'000 + 50 * boards.size());
    CHECK(d.tracker.totals().lost == 0);
}

TEST_CASE("a source that is believed keeps its slot while it is heard") {
    Detector d(usual_options());
    std::vector<std::uint16_t> all(SourceTable::max_sources);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    CHECK(run(d, all, start, start + 3 * ms));
    const std::uint64_t before = d.tracker.totals().accepted;
    CHECK_FALSE(d.tick(boards[0], start + 3 * ms).use);
    CHECK(d.tracker.totals().too_many_sources == 1);
    CHECK(d.tracker.totals().accepted == before);
    // One of them goes on; the others are silent for a long time.
    const std::uint64_t later = start + 20'000 * ms;
    d.tick(7, later);
    for (const std::uint16_t id : boards)
        CHECK(d.tick(id, later).use);
    CHECK(d.tracker.totals().too_many_sources == 1);
    CHECK(d.status(7, host(later)).datagrams == 4);
    CHECK(d.tracker.totals().accepted == before + 1 + boards.size());
}

TEST_CASE("the counts of a source whose slot another takes stay in the totals") {
    Detector d(usual_options());
    for (const std::uint64_t number : {0, 1, 2, 5, 5})  // two lost, one duplicate
        d.send_numbered(100, number, start, start + ms, 90, host(start));
    const auto before = d.tracker.totals();
    CHECK(before.lost == 2);
    CHECK(before.duplicate == 1);
    made_up(d, 90, start + 30'000 * ms);
    for (std::uint32_t round = 0; round < 2; ++round) {
        for (std::uint32_t id = 200; id < 200 + SourceTable::max_sources; ++id)
            d.send(static_cast<std::uint16_t>(id + round * 8000), start, start + ms, 90,
                   host(start + 30'000 * ms));
    }
    CHECK(d.status(100, 0).datagrams == 0);  // it has no slot any more
    CHECK(d.tracker.totals().lost == 2);
    CHECK(d.tracker.totals().duplicate == 1);
    CHECK(d.tracker.totals().accepted == before.accepted + 90 + 2 * SourceTable::max_sources);
}

TEST_CASE("expected sources have the first places and keep them") {
    auto options = usual_options();
    options.expected = {40'000, 40'001};
    Detector d(options);
    made_up(d, 6'000, start);
    const auto status = d.tracker.status(host(start));
    CHECK(status.sources[0].id == 40'000);
    CHECK(status.sources[1].id == 40'001);
    CHECK(d.tick(40'001, start).source == 1);
    CHECK(d.tick(40'000, start).source == 0);
}

TEST_CASE("bare sources can be expected, too") {
    auto options = usual_options();
    options.framing = net::Framing::bare;
    options.expected_senders = {{0x7F000001, 10'003}, {0x7F000001, 10'005}};
    Detector d(options);
    CHECK(d.tick(5, start).source == 1);
    CHECK(d.tick(5, start + ms).source == 1);
    d.tick(5, start + 2 * ms);
    CHECK(d.tracker.watermark(host(start + 2 * ms), 0) == 0);  // waits for the other
    CHECK(d.tick(3, start).source == 0);
    CHECK(d.tick(3, start + ms).source == 0);
    d.tick(3, start + 2 * ms);
    CHECK(d.tracker.watermark(host(start + 3 * ms), 0) > 0);
    options.expected_senders.push_back({0x7F000001, 10'003});
    CHECK_THROWS_AS(SourceTracker(options), std::invalid_argument);
}

TEST_CASE("the modules of a source are remembered") {
    SourceTracker tracker(usual_options());
    net::Datagram d;
    d.frames = d.timed_frames = 2;
    d.first_time = d.last_time = start;
    for (const std::uint16_t bdm : std::vector<std::uint16_t>{3, 4, 9}) {
        ++d.sequence;
        d.first_bdm = bdm;
        d.last_bdm = 5;
        tracker.observe(d, host(start));
    }
    const auto bdms = tracker.status(host(start)).sources.at(0).bdms;
    CHECK(bdms.count() == 4);
    CHECK(bdms[9]);
}

TEST_CASE("a source that starts another stream keeps its slot") {
    Detector d(usual_options());
    std::vector<std::uint16_t> all(SourceTable::max_sources);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    CHECK(run(d, all, start, start + 3 * ms));
    const std::int64_t now = host(start + 4 * ms);
    for (const std::uint16_t id : all)
        d.send(id, start + 3 * ms, start + 4 * ms, 90, now, net::flag_end_of_stream);
    for (const std::uint16_t id : all)
        d.send_numbered(id, 1'000'000, start + 4 * ms, start + 5 * ms, 90, now);
    CHECK_FALSE(d.send(boards[0], start, start + ms, 90, now).use);
    CHECK(d.tracker.status(now).replaced == 0);
    d.tracker.restart_watermark(now);  // detector time begins anew; the sources stay who they were
    CHECK_FALSE(d.send(boards[0], start, start + ms, 90, now).use);
    CHECK(d.tracker.status(now).replaced == 0);
}
