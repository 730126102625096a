#include "daemon/acquisition/undecided_frames.hpp"

#include <map>
#include <random>

#include "tests/support/catch.hpp"

using petacq::daemon::UndecidedFrames;

TEST_CASE("undecided frames are those of the parts that the watermark has not passed") {
    constexpr std::uint64_t part = 100;
    std::mt19937_64 random(11);
    UndecidedFrames frames(part);
    std::map<std::uint64_t, std::uint64_t> expected;  // [part] frames
    const auto count_from = [&](std::uint64_t watermark) {
        std::uint64_t sum = 0;
        for (auto at = expected.lower_bound(watermark / part); at != expected.end(); ++at)
            sum += at->second;
        return sum;
    };
    std::uint64_t watermark = 0;
    for (int i = 0; i < 20'000; ++i) {
        // Mostly near the watermark, in any order; now and then far ahead.
        const std::uint64_t time = watermark + random() % (random() % 50 == 0 ? 1'000'000 : 3'000);
        const std::uint64_t more = 1 + random() % 90;
        frames.add(time, more);
        expected[time / part] += more;
        if (random() % 5 == 0) {
            watermark += random() % 200;
            frames.advance(watermark);
            expected.erase(expected.begin(), expected.lower_bound(watermark / part));
        }
        const std::uint64_t from = watermark + random() % 4'000;
        REQUIRE(frames.count_from(from) == count_from(from));
        const std::uint64_t most = random() % 5'000;
        const std::uint64_t end = frames.fitting_end(from, most);
        if (end == UINT64_MAX) {
            REQUIRE(count_from(from) <= most);
        } else {
            REQUIRE(end >= from);
            REQUIRE(count_from(from) - count_from(end) <= most);
            REQUIRE(count_from(from) - count_from(end + part) > most);
        }
    }
    frames.clear();
    CHECK(frames.count_from(0) == 0);
}
