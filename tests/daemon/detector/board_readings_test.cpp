// Temperatures, missing datagrams and dead time by second, against sums over everything.
#include "daemon/detector/board_readings.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq;
using daemon::BoardReadings;
using daemon::BoardReport;

namespace {

constexpr std::uint64_t one_second = 6400;  // 64 parts of 100 ticks
constexpr std::uint32_t module_total = 3;

struct HitReading {
    std::uint64_t time;
    std::uint32_t bdm;
    std::int16_t sixteenths;
};

gpu::Tag blind_for(std::uint64_t time, std::uint32_t ticks, std::uint16_t source) {
    return {time, ticks, source, 0, static_cast<std::uint8_t>(gpu::TagKind::dead_time)};
}

BoardReadings some_readings(bool loss_known = true) {
    return {one_second, module_total, loss_known, {{7, {0, 1}}, {9, {1}}, {11, {}}}};
}

BoardReport taken(BoardReadings& from, gpu::TickRange range) {
    BoardReport report;
    from.take(range, report);
    return report;
}

double mean_of(const std::vector<HitReading>& all, gpu::TickRange range, std::uint32_t bdm) {
    double sum = 0;
    double count = 0;
    for (const HitReading& r : all) {
        const std::uint64_t part = r.time / 100 * 100;
        if (r.bdm != bdm || part < range.start || part + 100 > range.end) continue;
        sum += r.sixteenths / 16.0;
        ++count;
    }
    return sum / count;
}

bool close_to(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == Approx(b);
}

}  // namespace

TEST_CASE("the temperature of a second is the mean of its datagrams, in whatever order", "[seconds]") {
    const unsigned seed = GENERATE(range(0U, 10U));
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<HitReading> all;
    all.reserve(2000);
    for (int i = 0; i < 2000; ++i) {
        all.push_back({random() % (5 * one_second), static_cast<std::uint32_t>(random() % 2),
                       static_cast<std::int16_t>(static_cast<int>(random() % 4096) - 2048)});
    }
    // A segment ends in the second one, another one in the fourth.
    const std::uint64_t stop = one_second + random() % one_second;
    const std::vector<gpu::TickRange> ranges{{0, one_second},
                                             {one_second, stop},
                                             {stop, 2 * one_second},
                                             {2 * one_second, 3 * one_second},
                                             {3 * one_second, 3 * one_second + 150},
                                             {3 * one_second + 150, 5 * one_second}};
    BoardReadings at_once = some_readings();
    for (const HitReading& r : all)
        at_once.add_temperature(r.time, r.bdm, r.sixteenths);
    // Read as late as may be: before the end of the second in which they lie.
    BoardReadings in_time = some_readings();
    for (const gpu::TickRange& range : ranges) {
        std::shuffle(all.begin(), all.end(), random);
        for (const HitReading& r : all)
            if (range.start <= r.time && r.time < range.end)
                in_time.add_temperature(r.time, r.bdm, r.sixteenths);
        const BoardReport a = taken(at_once, range);
        const BoardReport b = taken(in_time, range);
        REQUIRE(a.temperature_C.size() == module_total);
        for (std::uint32_t bdm = 0; bdm < module_total; ++bdm) {
            CHECK(close_to(a.temperature_C[bdm], mean_of(all, range, bdm)));
            CHECK((a.temperature_C[bdm] == b.temperature_C[bdm] || std::isnan(a.temperature_C[bdm])));
        }
        CHECK(std::isnan(a.temperature_C[2]));
    }
}

TEST_CASE("times far from all others take little memory and spoil nothing", "[seconds]") {
    BoardReadings r = some_readings();
    r.add_temperature(50, 0, 16);
    for (std::uint64_t i = 0; i < 5000; ++i)
        r.add_temperature(UINT64_MAX - i * one_second, 0, 1600);
    r.add_temperature(60, 0, 48);
    r.add_temperature(60, module_total, 1);  // no such module
    CHECK(taken(r, {0, one_second}).temperature_C[0] == 2);
    CHECK(std::isnan(taken(r, {one_second, 2 * one_second}).temperature_C[0]));
    // What is later than a second that has been taken, in the part in which that ended, is in none.
    r.add_temperature(3 * one_second + 20, 0, 16);
    CHECK(std::isnan(taken(r, {2 * one_second, 3 * one_second + 30}).temperature_C[0]));
    r.add_temperature(3 * one_second + 70, 0, 160);
    r.add_temperature(3 * one_second + 120, 0, 32);
    CHECK(taken(r, {3 * one_second + 30, 4 * one_second}).temperature_C[0] == 2);
    r.add_temperature(4 * one_second, 0, 16);
    r.clear();
    CHECK(std::isnan(taken(r, {0, 10 * one_second}).temperature_C[0]));
}

TEST_CASE("a second has lost what its datagrams show to be missing", "[seconds]") {
    BoardReadings r = some_readings();
    r.add_lost(100, 3);
    r.add_lost(one_second + 1, 5);
    r.add_lost(200, -1);
    CHECK(taken(r, {0, one_second}).lost == 2);
    r.add_lost(2 * one_second - 1, -5);
    r.add_lost(2 * one_second, 1);
    CHECK(taken(r, {one_second, 2 * one_second}).lost == 0);
    CHECK(taken(r, {2 * one_second, 3 * one_second}).lost == 1);
    for (int i = 0; i < 100'000; ++i)
        r.add_lost(3 * one_second, 1);
    CHECK(taken(r, {3 * one_second, 4 * one_second}).lost == 100'000);
    BoardReadings bare = some_readings(false);
    CHECK(std::isnan(taken(bare, {0, one_second}).lost));
}

TEST_CASE("the dead time of a module is that of the tags of its source", "[seconds]") {
    BoardReadings r = some_readings();
    std::vector<gpu::Tag> tags{blind_for(10, 100, 7), blind_for(20, 50, 7), blind_for(30, 30, 9),
                               blind_for(40, 1, 11), blind_for(50, 1, 12)};
    tags.push_back({60, 1000, 7, 0, static_cast<std::uint8_t>(gpu::TagKind::trigger)});
    r.add(tags);
    // A slice that ends a second has tags of the next one, too.
    tags = {blind_for(one_second, 4, 7), blind_for(one_second + 79, 8, 7)};
    r.add(tags);
    BoardReport report = taken(r, {0, one_second});
    CHECK(report.dead_time[0] == 150);
    CHECK(report.dead_time[1] == (150 + 30) / 2.0);
    CHECK(std::isnan(report.dead_time[2]));
    // A segment ends in a second: its tags are those that came before. The first one tells of the second
    // before.
    tags = {blind_for(one_second + 100, 16, 9)};
    r.add(tags);
    report = taken(r, {one_second, one_second + 200});
    CHECK(report.dead_time[0] == 8);
    // The tag before was too long ago: this one is taken to tell of the whole range so far.
    CHECK(report.dead_time[1] == (8 + 2 * 16) / 2.0);
    r.clear();
    CHECK(std::isnan(taken(r, {0, 3 * one_second}).dead_time[1]));
}

TEST_CASE("the dead time after the last tag of a range is that before it, until a tag is overdue",
          "[seconds]") {
    BoardReadings r = some_readings();
    std::vector<gpu::Tag> tags;
    // A tag every 640 ticks, from the start of the run at 320; a tenth of the time is dead, later a fifth.
    for (std::uint64_t time = 960; time < 3 * one_second; time += 640)
        tags.push_back(blind_for(time, time <= one_second + 640 ? 64 : 128, 7));
    r.add(tags);
    CHECK(taken(r, {320, one_second}).dead_time[0] == Approx((one_second - 320) / 10.0));
    CHECK(taken(r, {one_second, 2 * one_second}).dead_time[0] == Approx(32 + 9 * 128 + 64));
    // The source is silent from here on.
    CHECK(taken(r, {2 * one_second, 3 * one_second}).dead_time[0] == Approx(one_second / 5.0));
    r.clear();
    r.add(std::vector<gpu::Tag>{blind_for(640, 64, 7), blind_for(1280, 64, 7)});
    CHECK(taken(r, {0, one_second}).dead_time[0] == 128);
}
