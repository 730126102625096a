// A bad source harms no other: runs of eight boards, and what one more sender does before, in and after them.
#include "daemon/seconds/reader.hpp"
#include "tests/daemon/acquisition/acquisition_stand.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint64_t origin = 3'600'000 * ms;
constexpr std::uint16_t boards = 8;
constexpr std::uint16_t bad = 77;

enum class List { yes, no };

/// Eight boards, and a ninth source that is listed with them.
struct DetectorStand : AcquisitionStand {
    explicit DetectorStand(List list, std::uint32_t slice_frames = 10'000) {
        tracker.jump_confirmations = 3;
        tracker.expected.clear();
        if (list == List::yes) tracker.expected = {1, 2, 3, 4, 5, 6, 7, 8, bad};
        options.slice_frames = slice_frames;
        between_ns = static_cast<std::int64_t>(ms / boards);
        script.on_span = [this](const gpu::FrameSpan& span, std::uint64_t watermark) {
            std::uint64_t time = 0;
            std::uint16_t source = 0;
            std::memcpy(&time, span.frames, sizeof time);
            std::memcpy(&source, span.frames + sizeof time, sizeof source);
            const bool believed = span.time_low <= time && time + ms <= span.time_high;
            const bool here = origin - 2'000 * ms <= time && time < origin + 10'000 * ms;
            if (believed && !here) elsewhere += span.count;
            if (source <= boards && time >= origin && time < origin + 10'000 * ms && believed &&
                time >= watermark + offset)
                in_time += span.count;
        };
        make();
    }
    void send_all(std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t time = from; time < to; time += ms) {
            for (std::uint16_t id = 1; id <= boards; ++id) {
                send(time, id);
                sent += 100;
            }
        }
    }
    /// The run ends as it was asked to, past everything that the boards have sent.
    void stop_at(std::uint64_t last) {
        stop();
        CHECK(finished[0].end.covered.end >= last + offset + 1);
        CHECK(finished[0].end.covered.end <= last + 20 * ms);
    }
    std::uint64_t sent = 0;       ///< frames of the boards
    std::uint64_t in_time = 0;    ///< of these, believed and not late
    std::uint64_t elsewhere = 0;  ///< frames far from the boards' time that are believed
};

}  // namespace

TEST_CASE("frames that are not valid, from an unknown id before the boards, decide nothing") {
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin();
    stand.send(UINT64_MAX - ms, bad, false);
    stand.turns(3);
    stand.pass(50);
    stand.send_all(origin, origin + 50 * ms);
    stand.stop_at(origin + 50 * ms);
    CHECK(stand.in_time == stand.sent);
}

TEST_CASE("a wild first datagram of a board decides nothing and costs nothing") {
    const std::uint64_t wild = GENERATE(UINT64_MAX - ms, std::uint64_t{0}, origin + 3'600'000 * ms);
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin();
    stand.send(wild, 1);
    stand.pass(50);
    stand.send_all(origin, origin + 50 * ms);
    stand.stop_at(origin + 50 * ms);
    CHECK(stand.finished[0].end.covered.ticks() <= 60 * ms);
    CHECK(stand.in_time == stand.sent);
}

TEST_CASE("a duration does not count from a wild time") {
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin({{}, {}, 2000 * ms});
    stand.send(0, bad);
    stand.pass(50);
    stand.send_all(origin, origin + 2'020 * ms);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.reason == "duration reached");
    CHECK(stand.finished[0].end.covered.end == origin + 2000 * ms - offset);
    CHECK(stand.finished[0].end.covered.ticks() == 2000 * ms);
    stand.check_closed();
}

TEST_CASE("a bad source in a pause of all boards does not end the run") {
    const bool valid = GENERATE(false, true);
    const std::uint64_t time = GENERATE(std::uint64_t{0}, origin + 3'600'000 * ms);
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin();
    stand.send_all(origin, origin + 600 * ms);
    for (std::uint64_t i = 0; i < 10; ++i) {
        stand.pass(150);
        stand.send(time + i * ms, bad, valid);
    }
    CHECK(stand.finished.empty());
    stand.send_all(origin + 2'100 * ms, origin + 2'150 * ms);
    CHECK(stand.finished.empty());
    stand.stop_at(origin + 2'150 * ms);
    CHECK(stand.in_time == stand.sent);
}

TEST_CASE("a source that lags when the others end does not end the run") {
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin();
    // It falls behind, in steps that are no jumps.
    std::uint64_t lagging = origin;
    for (std::uint64_t time = origin; time < origin + 3'000 * ms; time += ms) {
        stand.send_all(time, time + ms);
        if (time % (10 * ms) == 0) stand.send(lagging += ms, bad);
    }
    for (int i = 0; i < 20; ++i) {
        stand.pass(100);
        stand.send(lagging += ms, bad);
    }
    CHECK(stand.finished.empty());
    // Everything that the others have sent is decided.
    CHECK(stand.script.slices.back().watermark > origin + 3'000 * ms);
    CHECK(stand.in_time == stand.sent);
    stand.stop_at(origin + 3'000 * ms);
}

TEST_CASE("nothing from before a common reset is lost") {
    DetectorStand stand(GENERATE(List::yes, List::no));
    stand.begin();
    stand.send_all(origin, origin + 100 * ms);
    stand.send_all(20 * ms, 60 * ms);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.reason == "the boards were reset: detector time went back");
    CHECK_FALSE(stand.finished[0].end.failed);
    CHECK(stand.finished[0].end.covered.end == origin + 100 * ms + offset + 1);
    stand.check_closed();
    stand.begin();
    stand.send_all(60 * ms, 100 * ms);
    CHECK(stand.finished.size() == 1);
    stand.end();
    stand.silence();
    stand.silence();
    REQUIRE(stand.finished.size() == 2);
    CHECK(stand.finished[1].end.covered.end == 100 * ms + offset + 1);
    stand.check_closed();
}

TEST_CASE("a run goes on where two boards begin, whatever a source that was alone had sent") {
    const std::uint64_t there = GENERATE(std::uint64_t{0}, origin + 3'600'000 * ms);
    DetectorStand stand(List::no);
    stand.begin();
    for (std::uint64_t i = 0; i < 30; ++i) {
        stand.send(there + i * 50 * ms, bad);
        stand.pass(50);
    }
    stand.send_all(origin, origin + 90 * ms);
    CHECK(stand.finished.empty());
    stand.stop_at(origin + 90 * ms);
    CHECK(stand.finished[0].end.covered.ticks() <= 100 * ms);
    // The seconds of a source that was alone and ahead are gone: those of the boards lie before them.
    SecondsReader seconds(stand.finished[0].run->path() / "seconds.plm");
    std::uint64_t end = there == 0 ? 0 : origin - 1000 * ms;
    double length_s = 0;
    while (seconds.next()) {
        CHECK(seconds.start() >= end);
        CHECK(seconds.start() < origin + 1000 * ms);
        end = seconds.start() + seconds.length();
        length_s += static_cast<double>(seconds.length()) / (1000.0 * ms);
    }
    CHECK(end == stand.finished[0].end.covered.end);
    CHECK(length_s == Approx(stand.finished[0].end.seconds.length_s));
    CHECK(seconds.reader().condition().state == FileState::complete);
}

TEST_CASE("frames from before detector time begins are judged then, however short the slices are") {
    const std::uint32_t slice_frames = GENERATE(100U, 250U, 10'000U);
    DetectorStand stand(GENERATE(List::yes, List::no), slice_frames);
    stand.begin();
    stand.send(0, bad);
    stand.send(origin + 3'600'000 * ms, 1);
    stand.send_all(origin, origin + 50 * ms);
    stand.stop_at(origin + 50 * ms);
    CHECK(stand.in_time == stand.sent);
    CHECK(stand.elsewhere == 0);
}

TEST_CASE("before detector time begins, a source that is not proven cannot fill the memory") {
    DetectorStand stand(GENERATE(List::yes, List::no), GENERATE(100U, 10'000U));
    stand.begin();
    for (std::uint64_t i = 0; i < 200; ++i)
        stand.send(i * i * 3'000 * ms, bad);
    CHECK(stand.pool.free_count() > stand.pool.count() / 2);
    stand.send_all(origin, origin + 50 * ms);
    stand.stop_at(origin + 50 * ms);
    CHECK(stand.in_time == stand.sent);
    CHECK(stand.elsewhere == 0);
}

TEST_CASE("a board that waits long for the others loses nothing") {
    DetectorStand stand(List::yes, GENERATE(100U, 10'000U, 100'000U));
    const std::size_t waits = GENERATE(5U, 200U);                // less than a quarter of the pool, or more
    const std::uint64_t apart = GENERATE(1U, 30U, 1'000U) * ms;  // in all, more or less than max_jump
    const std::uint64_t meets = origin + waits * apart;
    if (meets > origin + 9'000 * ms) return;  // further than the stand looks
    stand.begin();
    for (std::size_t i = 0; i < waits; ++i)
        stand.send(origin + i * apart, 1);
    CHECK(stand.pool.free_count() > stand.pool.count() / 2);
    stand.sent = waits * 100;
    stand.send_all(meets, meets + 50 * ms);
    stand.stop_at(meets + 50 * ms);
    CHECK(stand.in_time == stand.sent);
}

TEST_CASE("before detector time begins, short-lived sources cannot fill the memory") {
    DetectorStand stand(List::no, 10'000);
    stand.options.max_pending_singles = 20'000;
    stand.make();
    stand.script.decides = false;
    stand.begin();
    for (std::uint16_t id = 100; id < 1'100; ++id)
        for (std::uint64_t i = 0; i < 2; ++i)
            stand.send(id * 10'000 * ms + i * ms, id);
    CHECK(stand.elsewhere <= 50'000);  // of 200,000 frames
    CHECK(stand.finished.empty());
}

TEST_CASE("a run with coincidences of a source that was alone goes on in its time") {
    DetectorStand stand(List::no);
    stand.script.pairs = true;
    stand.script.decides = GENERATE(true, false);  // false: only where a segment ends
    stand.begin();
    const std::uint64_t ahead = origin + 3'600'000 * ms;
    for (std::uint64_t i = 0; i < 30; ++i) {
        stand.send(ahead + i * 50 * ms, bad);
        stand.pass(50);
    }
    stand.send_all(origin, origin + 90 * ms);
    CHECK(stand.finished.empty());
    CHECK(stand.in_time == 0);
    CHECK(eventually([&] {
        stand.turns(1);
        return stand.acquisition->snapshot()->sources.behind_watermark;
    }));
    stand.end();
    stand.pass(300);
    stand.silence();
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.reason == "stopped by operator");
    CHECK(stand.finished[0].end.covered.end > ahead);
    CHECK(stand.finished[0].end.ledger.pairs.prompts_found > 0);
    stand.check_closed();
    // The next run is in the time of the boards.
    stand.begin();
    stand.sent = stand.in_time = 0;
    stand.send_all(origin + 2'000 * ms, origin + 2'050 * ms);
    CHECK(stand.finished.size() == 1);
    CHECK(stand.in_time == stand.sent);
}
