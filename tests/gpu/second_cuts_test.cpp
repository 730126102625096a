// Where seconds end.
#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/second_cuts.hpp"
#include "tests/support/catch.hpp"

using petacq::gpu::SecondCuts;
using petacq::gpu::TickRange;

namespace {

using Cut = std::pair<std::uint64_t, TickRange>;

std::vector<Cut> advance(SecondCuts& cuts, std::uint64_t from, std::uint64_t to, std::uint64_t earliest = 0) {
    std::vector<Cut> all;
    cuts.advance(from, to, earliest,
                 [&](std::uint64_t watermark, TickRange second) { all.emplace_back(watermark, second); });
    return all;
}

/// The seconds that end before the segment, and the one that ends with it.
std::vector<TickRange> close(SecondCuts& cuts, std::uint64_t at, std::uint64_t begin = 0) {
    std::vector<TickRange> all;
    const TickRange last = cuts.close(at, begin, [&](TickRange second) { all.push_back(second); });
    all.push_back(last);
    return all;
}

}  // namespace

TEST_CASE("seconds: each ends as soon as the watermark decides it") {
    SecondCuts cuts(1000, 30);
    CHECK(advance(cuts, 0, 1029).empty());
    CHECK(advance(cuts, 1029, 1030) == std::vector<Cut>{{1030, {0, 1000}}});
    CHECK(advance(cuts, 1030, 2000).empty());
    CHECK(advance(cuts, 2000, 4031) ==
          std::vector<Cut>{{2030, {1000, 2000}}, {3030, {2000, 3000}}, {4030, {3000, 4000}}});
    CHECK(advance(cuts, 4031, 4031).empty());
}

TEST_CASE("seconds: the first begins where data begin") {
    SecondCuts cuts(1000, 30);
    CHECK(advance(cuts, 0, 5'000'000, UINT64_MAX).empty());
    CHECK(advance(cuts, 0, 7'001'040, 6'999'500) ==
          std::vector<Cut>{{7'000'030, {6'999'500, 7'000'000}}, {7'001'030, {7'000'000, 7'001'000}}});
}

TEST_CASE("seconds: the end of a segment divides them") {
    SecondCuts cuts(1000, 30);
    CHECK(advance(cuts, 0, 1500).size() == 1);
    CHECK(close(cuts, 1500) == std::vector<TickRange>{{1000, 1500}});
    CHECK(advance(cuts, 1500, 2030) == std::vector<Cut>{{2030, {1500, 2000}}});
    // The watermark that ends the second lies beyond the segment.
    CHECK(advance(cuts, 2030, 3010).empty());
    CHECK(close(cuts, 3010) == std::vector<TickRange>{{2000, 3000}, {3000, 3010}});
    CHECK(advance(cuts, 3010, 4030) == std::vector<Cut>{{4030, {3010, 4000}}});
}

TEST_CASE("seconds: a segment that ends where a second does has no empty one") {
    SecondCuts cuts(1000, 30);
    CHECK(advance(cuts, 0, 2000).size() == 1);
    CHECK(close(cuts, 2000) == std::vector<TickRange>{{1000, 2000}});
    CHECK(close(cuts, 2000) == std::vector<TickRange>{{2000, 2000}});
}

TEST_CASE("seconds: a segment without data has none, and one of which nothing was decided has all") {
    SecondCuts cuts(1000, 30);
    CHECK(close(cuts, 1500, UINT64_MAX) == std::vector<TickRange>{{1500, 1500}});
    CHECK(close(cuts, 4500, 5000) == std::vector<TickRange>{{4500, 4500}});
    CHECK(close(cuts, 7200, 5100) == std::vector<TickRange>{{5100, 6000}, {6000, 7000}, {7000, 7200}});
    std::uint64_t end = 7200;
    const std::vector<TickRange> years = close(cuts, std::uint64_t{1} << 62, 0);
    CHECK(years.size() < 300);
    for (const TickRange& second : years) {
        CHECK(second.start == end);
        end = second.end;
    }
    CHECK(end == std::uint64_t{1} << 62);
}

TEST_CASE("seconds: they are the same however the watermark moves") {
    std::vector<Cut> whole;
    {
        SecondCuts cuts(1000, 30);
        whole = advance(cuts, 0, 90'000, 300);
    }
    for (const std::uint64_t step : {1ULL, 7ULL, 999ULL, 1000ULL, 2345ULL}) {
        SecondCuts cuts(1000, 30);
        std::vector<Cut> pieces;
        for (std::uint64_t at = 0; at < 90'000; at += step) {
            for (const Cut& cut : advance(cuts, at, std::min<std::uint64_t>(at + step, 90'000), 300))
                pieces.push_back(cut);
        }
        CHECK(pieces == whole);
    }
}

TEST_CASE("seconds: a jump of years is few cuts without a gap") {
    SecondCuts cuts(1000, 30);
    const std::vector<Cut> all = advance(cuts, 0, std::uint64_t{1} << 62, 0);
    CHECK(all.size() < 300);
    std::uint64_t end = 0;
    for (const Cut& cut : all) {
        CHECK(cut.second.start == end);
        end = cut.second.end;
    }
    CHECK(end == (std::uint64_t{1} << 62) / 1000 * 1000);
}

TEST_CASE("seconds: detector time may start again") {
    SecondCuts cuts(1000, 30);
    advance(cuts, 0, 5500);
    close(cuts, 5600);
    cuts.restart();
    CHECK(advance(cuts, 0, 1030) == std::vector<Cut>{{1030, {0, 1000}}});
}
