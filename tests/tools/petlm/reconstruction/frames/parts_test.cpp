// The parts of a series: schedules, which records a frame gets, regions, and prompts drawn anew.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/em/pair_counts.hpp"
#include "tools/petlm/reconstruction/frames/automatic.hpp"
#include "tools/petlm/reconstruction/frames/distribution.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("frames: a schedule gives lengths in ticks, and anything else is refused with what was expected",
          "[petlm][frames]") {
    constexpr double tick_ps = 1e6;  // a microsecond
    CHECK(frames::lengths_of("2x10s,0.5s,1.5min,1h", tick_ps) ==
          std::vector<std::uint64_t>{10'000'000, 10'000'000, 500'000, 90'000'000, 3'600'000'000});
    // Between two ticks: up, as petlm cut rounds.
    CHECK(frames::lengths_of("0.0000015s", tick_ps) == std::vector<std::uint64_t>{2});
    for (const char* wrong : {"", "10", "x10s", "0x10s", "-1x10s", "2x", "10s,", "10s;10s", "10m", "0s",
                              "2x3x4s", "1e3s", "1..5s"}) {
        CAPTURE(wrong);
        try {
            frames::lengths_of(wrong, tick_ps);
            FAIL("it was taken");
        } catch (const petlm::UsageError& error) {
            CHECK_THAT(error.what(), contains("expected"));
        }
    }
    CHECK_THROWS_AS(frames::lengths_of("1001x1s", tick_ps), petlm::UsageError);
    CHECK_THROWS_AS(frames::lengths_of("600x1s,401x1s", tick_ps), petlm::UsageError);
}

TEST_CASE("frames: the automatic ones double from the injection on, and none has few trues",
          "[petlm][frames]") {
    constexpr double tick_ps = 1e9;  // a millisecond
    const auto seconds_of = [](int count, const auto& trues) {
        std::vector<frames::Second> out;
        for (int i = 0; i < count; ++i) {
            const auto start = static_cast<std::uint64_t>(1000 * i);
            out.push_back({{start, start + 1000}, static_cast<double>(trues(i))});
        }
        return out;
    };
    const auto lengths = [](const std::vector<gpu::TickRange>& ranges) {
        std::vector<int> out;
        for (const gpu::TickRange& range : ranges)
            out.push_back(static_cast<int>(range.ticks() / 1000));
        return out;
    };
    const auto even = seconds_of(177, [](int) { return 100; });
    CHECK(lengths(frames::growing_frames(even, 0, tick_ps)) ==
          std::vector<int>{5, 5, 5, 5, 10, 10, 10, 10, 20, 20, 20, 20, 40 - 3});
    // A rest shorter than half of its length belongs to the frame before.
    const auto rest = seconds_of(65, [](int) { return 100; });
    CHECK(lengths(frames::growing_frames(rest, 0, tick_ps)) == std::vector<int>{5, 5, 5, 5, 10, 10, 10, 15});
    // From the injection on; the second that holds it is cut.
    const auto late = frames::growing_frames(even, 100'500, tick_ps);
    CHECK(late.front() == gpu::TickRange{100'500, 106'000});
    CHECK(late.back().end == 177'000);
    // Few trues at first: the frame waits for a thousandth of all.
    const auto slow = seconds_of(100, [](int i) { return i < 12 ? 1 : 1000; });
    CHECK(lengths(frames::growing_frames(slow, 0, tick_ps)).front() == 13);

    CHECK(frames::injection_in(even) == std::nullopt);
    CHECK(frames::injection_in(seconds_of(60, [](int i) { return i < 30 ? 5 : 100 - i; })) == 30'000U);
    CHECK(frames::injection_in(seconds_of(60, [](int) { return 0; })) == std::nullopt);
    CHECK(frames::growing_frames({}, 0, tick_ps).empty());
}

TEST_CASE("frames: each record goes to the frame of its time, and frames are complete in their order",
          "[petlm][frames]") {
    std::mt19937_64 random(20);
    for (int round = 0; round < 50; ++round) {
        // Times in turn of one of some frames, or of none.
        const std::size_t count = 1 + random() % 5;
        std::vector<int> frame_at(300, -1);
        std::vector<std::vector<gpu::TickRange>> ranges(count);
        for (std::size_t t = random() % 20; t < frame_at.size();) {
            const std::size_t frame = random() % count;
            const std::size_t end = std::min(frame_at.size(), t + 1 + random() % 30);
            ranges[frame].push_back({t, end});
            std::fill(frame_at.begin() + static_cast<std::ptrdiff_t>(t),
                      frame_at.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(frame));
            t = end + (random() % 2) * (random() % 20);
        }
        std::vector<daemon::Intervals> times;
        for (auto& of_frame : ranges)
            times.emplace_back(std::move(of_frame));
        gpu::RecordVector<gpu::Coincidence> records;
        for (std::uint64_t t = 0; t < frame_at.size(); ++t) {
            for (std::size_t n = random() % 3; n > 0; --n) {
                records.emplace_back();
                records.back().time = t;
            }
        }
        std::vector<std::size_t> taken(count);
        std::size_t complete = 0;
        frames::Distribution distribution(
            times,
            [&](std::size_t frame, std::span<const gpu::Coincidence> some) {
                REQUIRE(frame >= complete);
                for (const gpu::Coincidence& c : some)
                    REQUIRE(frame_at[c.time] == static_cast<int>(frame));
                taken[frame] += some.size();
            },
            [&](std::size_t frame) { REQUIRE(frame == complete++); });
        for (std::size_t at = 0; at < records.size();) {
            const std::size_t some = std::min(records.size() - at, std::size_t{random() % 40});
            distribution.add(std::span(records).subspan(at, some));
            at += some;
        }
        distribution.finish();
        CHECK(complete == count);
        CHECK(distribution.most_open() <= count);
        for (std::size_t frame = 0; frame < count; ++frame) {
            const auto expected = std::count_if(records.begin(), records.end(), [&](const auto& c) {
                return frame_at[c.time] == static_cast<int>(frame);
            });
            CHECK(taken[frame] == static_cast<std::size_t>(expected));
        }
    }
    const std::vector<daemon::Intervals> one_after_another = {gpu::TickRange{0, 10}, gpu::TickRange{10, 20}};
    CHECK(frames::Distribution(one_after_another, {}, {}).most_open() == 1);
    const std::vector<daemon::Intervals> in_turn = {daemon::Intervals({{0, 10}, {20, 30}, {40, 50}}),
                                                    daemon::Intervals({{10, 20}, {30, 40}, {50, 60}})};
    CHECK(frames::Distribution(in_turn, {}, {}).most_open() == 2);
}

namespace {

/// Values that rise along the axes.
std::vector<float> slope(const image::Grid& grid) {
    std::vector<float> out;
    for (std::size_t z = 0; z < grid.n[2]; ++z) {
        for (std::size_t y = 0; y < grid.n[1]; ++y) {
            for (std::size_t x = 0; x < grid.n[0]; ++x)
                out.push_back(static_cast<float>(100 + 2 * grid.centre(0, x) - 3 * grid.centre(1, y) +
                                                 5 * grid.centre(2, z)));
        }
    }
    return out;
}

}  // namespace

TEST_CASE("frames: the mean in a sphere is that of its place, however small or coarse", "[petlm][frames]") {
    const image::Grid grid{{30, 30, 20}, 2.3};
    const auto values = slope(grid);
    for (const double radius : {0.4, 2.0, 9.5}) {
        const std::string r = std::to_string(radius);
        const frames::Region region("liver.1=sphere:3.1,-4.2,5.7," + r, grid);
        CHECK(region.name() == "liver.1");
        CHECK(region.inside() == 1);
        // Places lie at most an eighth of a voxel from where the sphere ends.
        CHECK(region.mean(values) == Approx(100 + 6.2 + 12.6 + 28.5).margin(radius < 1 ? 3 : 0.6));
        if (radius > 1) {
            const double ml = 4.0 / 3 * std::numbers::pi * std::pow(radius, 3) / 1000;
            CHECK(region.volume_ml() == Approx(ml).epsilon(radius > 5 ? 0.01 : 0.15));
        }
    }
    const frames::Region cut("half=sphere:0,0,23,6", grid);
    CHECK(cut.inside() == Approx(0.5).margin(0.03));
}

TEST_CASE("frames: a mask has its own voxels, rotated or not", "[petlm][frames]") {
    const TemporaryDirectory dir;
    const image::Grid grid{{24, 24, 24}, 2};
    const auto values = slope(grid);
    // A box from (2, -6, 0) to (10, 2, 4) mm, as voxels of 1 x 2 x 4 mm.
    const nifti::Volume mask{{8, 4, 3}, {{{1, 0, 0}, {0, 2, 0}, {0, 0, 4}}}, {2.5, -5, -2}, {}};
    std::vector<float> inside(8 * 4 * 3);
    std::fill(inside.begin() + 32, inside.begin() + 64, 1.0F);
    const auto write = [&](const std::string& name, std::string header) {
        write_file(dir / name, header + std::string(reinterpret_cast<const char*>(inside.data()),
                                                    inside.size() * sizeof(float)));
        return "box=" + (dir / name).string();
    };
    const std::string header = nifti::header(mask, "a mask");
    const frames::Region box(write("mask.nii", header), grid);
    CHECK(box.volume_ml() == Approx(8 * 8 * 4 / 1000.0));
    CHECK(box.mean(values) == Approx(100 + 2 * 6 + 3 * 2 + 5 * 2));
    // The same box turned by 90 degrees about z: x' = -y, y' = x.
    std::string turned = header;
    const float rows[2][4] = {{0, -2, 0, 5}, {1, 0, 0, 2.5F}};  // NOLINT(modernize-avoid-c-arrays)
    std::memcpy(turned.data() + 280, rows, sizeof rows);
    const frames::Region other(write("turned.nii", turned), grid);
    CHECK(other.volume_ml() == Approx(8 * 8 * 4 / 1000.0));
    CHECK(other.mean(values) == Approx(100 + 2 * 2 - 3 * 6 + 5 * 2));

    std::fill(inside.begin(), inside.end(), 0.5F);
    CHECK_THROWS_AS(frames::Region(write("empty.nii", header), grid), petlm::UsageError);
    for (const char* wrong :
         {"sphere:0,0,0,5", "=sphere:0,0,0,5", "a b=sphere:0,0,0,5", "a=sphere:0,0,0", "a=sphere:0,0,0,0",
          "a=sphere:0,0,0,5,1", "a=sphere:0,0,x,5", "a=sphere:100,0,0,5"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(frames::Region(wrong, grid), petlm::UsageError);
    }
    CHECK_THROWS_AS(frames::regions_of({"a=sphere:0,0,0,5", "a=sphere:1,0,0,5"}, grid), petlm::UsageError);
}

TEST_CASE("image: prompts drawn anew have the mean and the spread of counted ones", "[petlm][frames]") {
    net::WorkerPool pool(1);
    image::PairCounts counts(1000, 1U << 16U, pool);
    gpu::RecordVector<gpu::Coincidence> records;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        records.emplace_back();
        records.back().crystal_a = i % 100;
        records.back().crystal_b = 100 + i % 700;
        records.back().kind = gpu::Kind::prompt;
    }
    counts.add(records);
    counts.finish();
    constexpr int draws = 400;
    double sum = 0;
    double squares = 0;
    for (int seed = 0; seed < draws; ++seed) {
        const image::PairCounts drawn = counts.resampled(static_cast<std::uint64_t>(seed));
        CHECK(std::accumulate(drawn.counts().begin(), drawn.counts().end(), std::uint64_t{0}) ==
              drawn.prompts());
        CHECK(std::find(drawn.counts().begin(), drawn.counts().end(), 0U) == drawn.counts().end());
        const auto all = static_cast<double>(drawn.prompts());
        sum += all;
        squares += all * all;
    }
    const double mean = sum / draws;
    const double variance = squares / draws - mean * mean;
    CHECK(mean == Approx(20'000).margin(4 * std::sqrt(20'000.0 / draws)));
    CHECK(variance == Approx(20'000).epsilon(4 * std::sqrt(2.0 / draws)));
    CHECK(counts.resampled(3).counts() == counts.resampled(3).counts());
    // With the same seed, a prompt that others hold, too, counts as often among them.
    image::PairCounts some(800, 1024, pool);
    some.add(std::span(records).first(7'000));
    some.finish();
    const image::PairCounts of_all = counts.resampled(3);
    const image::PairCounts of_some = some.resampled(3);
    std::size_t more = 0;
    for (std::size_t i = 0, k = 0; i < of_some.pairs().size(); ++i) {
        const image::Pair pair = of_some.pairs()[i];
        while (k < of_all.pairs().size() && (of_all.pairs()[k].a != pair.a || of_all.pairs()[k].b != pair.b))
            ++k;
        REQUIRE(k < of_all.pairs().size());
        CHECK(of_some.counts()[i] <= of_all.counts()[k]);
        more += of_all.counts()[k] - of_some.counts()[i];
    }
    CHECK(more > 0);
    CHECK(counts.prompts() == 20'000);
}
