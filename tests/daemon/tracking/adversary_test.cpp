// Good sources beside one that sends anything, at any moment: no frame of a good source is late or a time
// jump, the watermark goes on, and no reset is reported. And common resets are found exactly.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint16_t bad_id = 99;
constexpr std::uint64_t origin = 3'600'000 * ms;

struct Scene {
    std::uint64_t seed = 1;
    std::uint16_t boards = 8;
    bool listed = true;          ///< the boards, and the bad one if it is a board
    std::uint64_t bad_from = 0;  ///< host time before origin at which the bad source begins
    std::uint64_t pause_at = 0;  ///< of all boards, after origin; 0: none
    std::uint64_t pause = 0;
    std::uint64_t duration = 2000 * ms;
};

/// Makes up the times of a bad source: its mood of the moment decides how wild they are.
class Adversary {
  public:
    explicit Adversary(std::uint64_t seed) : random_(seed) {}

    /// `now`: the true time.
    std::uint64_t next(std::uint64_t now) {
        if (left_ == 0) {
            mood_ = random_.below(9);
            left_ = 1 + random_.below(60);
            base_ = random_.one_in(2) ? random_.next() : now + random_.below(8'000 * ms) - 4'000 * ms;
            began_ = now;
        }
        --left_;
        switch (mood_) {
            case 0:
                return random_.next();  // noise
            case 1:
                return base_;  // stuck
            case 2:
                return base_ + (now - began_);  // wrong, but consistent
            case 3:
                return now;  // well-behaved
            case 4:
                return base_ += 900 * ms;  // creeps ahead
            case 5:
                return base_ -= 900 * ms;  // creeps back
            case 6:
                return now - began_;  // was reset
            case 7:
                return random_.one_in(2) ? UINT64_MAX - random_.below(5) : random_.below(5);
            default:
                return now + random_.below(3'900 * ms) - 1'950 * ms;  // jitters within max_jump
        }
    }
    /// A datagram of the bad source at `now`.
    void send(Detector& d, std::uint64_t now) {
        const std::uint64_t first = next(now);
        const std::uint64_t last = random_.one_in(4) ? random_.next() : first + random_.below(3 * ms);
        const auto frames = static_cast<std::uint32_t>(1 + random_.below(3));
        const std::uint8_t flags = random_.one_in(40) ? petacq::net::flag_end_of_stream : std::uint8_t{0};
        const std::uint64_t number = random_.one_in(20) ? random_.next() : d.sequence[bad_id]++;
        d.send_numbered(bad_id, number, first, last, frames, host(now), flags);
    }

  private:
    Random random_;
    std::uint64_t mood_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t base_ = 0;
    std::uint64_t began_ = 0;
};

void play(const Scene& scene) {
    CAPTURE(scene.seed, scene.boards, scene.listed, scene.bad_from / ms, scene.pause_at / ms,
            scene.pause / ms);
    Random random(scene.seed);
    auto o = usual_options();
    if (scene.listed) {
        for (std::uint16_t id = 0; id < scene.boards; ++id)
            o.expected.push_back(id);
        o.expected.push_back(bad_id);
    }
    Detector d(o);
    Adversary bad(scene.seed * 77);
    std::vector<std::uint64_t> delay;
    for (std::uint16_t id = 0; id < scene.boards; ++id)
        delay.push_back(random.below(3 * ms));

    std::uint64_t watermark = 0;
    std::uint64_t late = 0;
    std::uint64_t rejected = 0;
    std::vector<std::uint64_t> waiting;  // frames that are judged when time begins
    for (std::uint64_t now = origin - scene.bad_from; now < origin + scene.duration; now += ms) {
        const bool pausing =
            scene.pause != 0 && now >= origin + scene.pause_at && now < origin + scene.pause_at + scene.pause;
        for (std::uint64_t i = random.below(4); i > 0; --i)
            bad.send(d, now);
        if (now >= origin + 5 * ms && !pausing) {
            for (std::uint16_t id = 0; id < scene.boards; ++id) {
                // Datagrams in disorder, by less than max_disorder in all.
                const std::uint64_t time = now - delay[id] - random.below(2 * ms);
                const Verdict v = d.send(id, time, time + ms, 90, host(now));
                if (time - o.max_offset < watermark) ++late;
                if (!takes(v, time) || !takes(v, time + ms)) ++rejected;
                if (!d.tracker.time().established()) waiting.push_back(time);
                if (d.tracker.time().established() && !waiting.empty()) {
                    for (const std::uint64_t t : waiting)
                        rejected += takes(d.tracker.time().believed_times(), t) ? 0 : 1;
                    waiting.clear();
                }
            }
        }
        const std::uint64_t next = d.tracker.watermark(host(now), 0);
        REQUIRE(next >= watermark);
        watermark = next;
        REQUIRE(d.tracker.time().went_back() == DetectorTime::Back::no);
        if (now > origin + 600 * ms && (scene.pause == 0 || now < origin + scene.pause_at)) {
            // At most held back by a source that lags, and one timeout.
            REQUIRE(watermark + o.max_lag + 20 * ms > now);
        }
        REQUIRE(watermark < std::max(now, origin + 20 * ms));
    }
    CHECK(late == 0);
    CHECK(rejected == 0);
    CHECK(d.tracker.time().earliest() >= origin - o.max_disorder);
    CHECK(d.tracker.time().earliest() <= origin + 6 * ms);
}

}  // namespace

TEST_CASE("one bad source harms no other: in a run", "[tracking][adversary]") {
    Scene scene;
    scene.seed = static_cast<std::uint64_t>(GENERATE(range(1, 31)));
    scene.boards = static_cast<std::uint16_t>(3 + scene.seed % 6);
    scene.listed = scene.seed % 2 == 0;
    play(scene);
}

TEST_CASE("one bad source harms no other: before a run", "[tracking][adversary]") {
    Scene scene;
    scene.seed = static_cast<std::uint64_t>(GENERATE(range(100, 130)));
    scene.boards = static_cast<std::uint16_t>(3 + scene.seed % 6);
    scene.bad_from = (scene.seed % 8) * 500 * ms;
    play(scene);
}

TEST_CASE("one bad source harms no other: in a pause of all boards", "[tracking][adversary]") {
    Scene scene;
    scene.seed = static_cast<std::uint64_t>(GENERATE(range(200, 230)));
    scene.boards = static_cast<std::uint16_t>(3 + scene.seed % 6);
    scene.listed = scene.seed % 2 == 0;
    scene.pause_at = 800 * ms;
    scene.pause = (1 + scene.seed % 5) * 700 * ms;
    scene.duration = scene.pause_at + scene.pause + 700 * ms;
    play(scene);
}

TEST_CASE("common resets are found exactly, one bad source or none", "[tracking][adversary]") {
    const auto seed = static_cast<std::uint64_t>(GENERATE(range(300, 320)));
    Random random(seed);
    const auto boards = static_cast<std::uint16_t>(3 + random.below(6));
    const bool with_bad = random.one_in(2);
    CAPTURE(seed, boards, with_bad);
    auto o = usual_options();
    Detector d(o);
    Adversary bad(seed);
    const std::uint64_t reset_at = origin + 300 * ms + random.below(200 * ms);
    const std::uint64_t restarts_at = random.below(1000 * ms);
    std::uint64_t confirmed_at = 0;
    std::uint64_t late = 0;
    std::uint64_t watermark = 0;
    for (std::uint64_t now = origin; now < reset_at + 700 * ms; now += ms) {
        if (with_bad && now > origin + 50 * ms) bad.send(d, now);
        for (std::uint16_t id = 0; id < boards; ++id) {
            // They are reset one after the other.
            const std::uint64_t own_reset = reset_at + id * ms;
            const std::uint64_t time = now < own_reset ? now : restarts_at + (now - own_reset);
            if (now < own_reset && time - o.max_offset < watermark) ++late;
            d.send(id, time, time + ms, 90, host(now));
        }
        if (confirmed_at == 0) watermark = d.tracker.watermark(host(now), 0);
        if (d.tracker.time().went_back() == DetectorTime::Back::no) continue;
        REQUIRE(confirmed_at == 0);
        confirmed_at = now;
        // Everything from before the reset belongs to the time before.
        CHECK(d.tracker.time().newest() >= reset_at + boards * ms - ms);
        d.tracker.follow_reset(host(now));
    }
    CHECK(late == 0);
    REQUIRE(confirmed_at != 0);
    CHECK(confirmed_at >= reset_at + (boards / 2) * ms);
    CHECK(confirmed_at <= reset_at + boards * ms + 3 * ms + 501 * ms);
    const std::uint64_t end = host(reset_at + 700 * ms);
    CHECK(d.tracker.watermark(static_cast<std::int64_t>(end), 0) + o.max_lag + 20 * ms >
          restarts_at + 700 * ms - boards * ms);
}

TEST_CASE("steps back of all boards by more than max_lag are a reset, smaller ones are counted",
          "[tracking][adversary]") {
    const std::uint64_t by = GENERATE(5 * ms, 50 * ms, 900 * ms, 1500 * ms, 1990 * ms);
    const auto o = usual_options();
    Detector d(o);
    const std::vector<std::uint16_t> ids{1, 2, 3, 4};
    run(d, ids, start, start + 2'500 * ms);
    const std::uint64_t t = start + 2'500 * ms;
    for (std::uint64_t i = 0; i < 20; ++i)
        for (const auto id : ids)
            d.send(id, t + i * ms - by, t + (i + 1) * ms - by, 90, host(t + i * ms));
    const std::int64_t now = host(t + 20 * ms);
    d.tracker.watermark(now, 0);
    CHECK(d.tracker.totals().stepped_back == (by > o.max_disorder ? 4 : 0));
    CHECK(d.tracker.totals().clock_jumps == 0);
    CHECK((d.tracker.time().went_back() == DetectorTime::Back::common_reset) == (by > o.max_lag));
    CHECK(d.status(1, now).steps_back == (by > o.max_disorder ? 1 : 0));
}

TEST_CASE("a bad source that was alone gives way to two others", "[tracking][adversary]") {
    const std::uint64_t there = GENERATE(std::uint64_t{0}, origin + 3'600'000 * ms);
    const auto o = usual_options();
    Detector d(o);
    for (std::uint64_t t = 0; t < 1000 * ms; t += ms) {
        d.send(bad_id, there + t, there + t + ms, 90, host(origin + t));
        d.tracker.watermark(host(origin + t), 0);
    }
    CHECK(d.tracker.time().established());
    const std::uint64_t from = origin + 1000 * ms;
    run(d, {1, 2}, from, from + 5 * ms);
    if (there > origin) {
        REQUIRE(d.tracker.time().went_back() == DetectorTime::Back::replaced);
        d.tracker.follow_reset(host(from + 5 * ms));
    }
    CHECK(run(d, {1, 2}, from + 5 * ms, from + 50 * ms));
    CHECK(d.tracker.watermark(host(from + 50 * ms), 0) == from + 49 * ms - o.max_disorder - o.max_offset);
    CHECK(d.tracker.time().earliest() == from);
}

TEST_CASE("without a list, made-up ids elsewhere decide nothing, however many", "[tracking][adversary]") {
    const auto o = usual_options();
    Detector d(o);
    const std::vector<std::uint16_t> boards{1, 2, 3};
    CHECK(run(d, boards, start, start + 20 * ms));
    const std::uint64_t elsewhere = GENERATE(std::uint64_t{0}, start + 3'600'000 * ms);
    for (std::uint64_t t = start + 20 * ms; t < start + 60 * ms; t += ms) {
        for (std::uint16_t id = 100; id < 150; ++id)
            d.send(id, elsewhere + t - start, elsewhere + t - start + ms, 90, host(t));
        CHECK(run(d, boards, t, t + ms));
        CHECK(d.tracker.time().went_back() == DetectorTime::Back::no);
    }
    CHECK(d.tracker.watermark(host(start + 60 * ms), 0) == start + 59 * ms - o.max_disorder - o.max_offset);
}
