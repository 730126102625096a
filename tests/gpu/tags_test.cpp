// Tags by hand: floods, segment ends, lateness. properties_test.cpp has them in random cases.
#include <algorithm>
#include <vector>

#include "net/wire.hpp"
#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

RawFrame tag(std::uint64_t time, std::uint32_t value = 0, std::uint8_t channel = 0, std::uint8_t kind = 0) {
    RawFrame raw;
    net::encode_tag({net::default_tag_marker, channel, kind, time, value}, raw.bytes.data(),
                    net::FrameVersion::one);
    return raw;
}

/// A pipeline that gets slices of tags, each of one source with id 7.
class Stand {
  public:
    Stand(const Backend& backend, std::uint32_t slice_frames) : c_(make_case(Family::tiny, 1)) {
        gpu::PipelineOptions options = c_.options;
        options.frame_version = net::FrameVersion::one;
        options.head_marker = net::default_head_marker;
        options.tail_marker = net::default_tail_marker;
        options.tag_marker = net::default_tag_marker;
        options.sources.clear();
        options.max_slice_frames = slice_frames;
        options.max_pending_singles = 1000;
        options.threads = 3;
        pipeline_ = backend.make(options, c_.setup.calibration);
    }
    const gpu::SliceResult& feed(const std::vector<RawFrame>& frames, std::uint64_t watermark,
                                 std::optional<std::uint64_t> close_at = {}, std::uint64_t time_low = 0,
                                 std::uint64_t time_high = UINT64_MAX) {
        gpu::FrameSpan span{reinterpret_cast<const std::byte*>(frames.data()),
                            static_cast<std::uint32_t>(frames.size()),
                            time_low,
                            time_high,
                            0,
                            7};
        pipeline_->submit({0, {&span, 1}, watermark, close_at});
        REQUIRE(pipeline_->collect(result_, true));
        return result_;
    }
    gpu::Pipeline& pipeline() { return *pipeline_; }

  private:
    Case c_;
    std::unique_ptr<gpu::Pipeline> pipeline_;
    gpu::SliceResult result_;
};

std::vector<std::uint64_t> times_of(const gpu::SliceResult& result) {
    std::vector<std::uint64_t> times;
    for (const gpu::Tag& t : result.tags)
        times.push_back(t.time);
    return times;
}
using Times = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("tags: fields, order, watermark, segment ends, lateness, time jumps") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Stand stand(backend, 100);
        const std::vector<RawFrame> frames{tag(30),           tag(10, 5, 15, 255), tag(10, 4, 15, 255),
                                           tag(10, 9, 15, 2), tag(10, 9, 0, 255),  tag(20, 0xFFFFFFFE, 3, 2)};
        const gpu::SliceResult& first = stand.feed(frames, 20);
        CHECK(first.tags ==
              gpu::RecordVector<gpu::Tag>{
                  {10, 9, 7, 0, 255}, {10, 9, 7, 15, 2}, {10, 4, 7, 15, 255}, {10, 5, 7, 15, 255}});
        CHECK(first.tag_counts == gpu::TagCounts{6, 0, 0, 6});
        CHECK(first.frames == gpu::FrameCounts{});
        CHECK(first.pending_tags == 2);
        CHECK(first.pending == 0);
        CHECK(first.latest_pending_time == 30);

        // The segment ends at 30; the watermark is above. A tag at the end belongs to the next one.
        const gpu::SliceResult& second =
            stand.feed({tag(19), tag(29), tag(31), tag(90), tag(91)}, 50, 30, 0, 90);
        CHECK(times_of(second) == Times{20, 29});
        CHECK(second.tag_counts == gpu::TagCounts{5, 1, 1, 3});
        CHECK(second.tags.front() == gpu::Tag{20, 0xFFFFFFFE, 7, 3, 2});
        CHECK(second.pending_tags == 3);

        CHECK(times_of(stand.feed({tag(UINT64_MAX), tag(50)}, 51)) == Times{30, 31, 50});
        CHECK(times_of(stand.feed({}, UINT64_MAX)) == Times{90});
        const gpu::SliceResult& last = stand.feed({}, UINT64_MAX, UINT64_MAX);
        CHECK(times_of(last) == Times{UINT64_MAX});
        CHECK(last.pending_tags == 0);
        CHECK(last.latest_pending_time == 0);

        stand.pipeline().reset();
        stand.feed({tag(3)}, 1);
        stand.pipeline().reset();
        CHECK(times_of(stand.feed({tag(2)}, UINT64_MAX, UINT64_MAX)) == Times{2});
    }
}

TEST_CASE("tags: a wrong tail marker is no tag") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Stand stand(backend, 100);
        RawFrame bad = tag(5);
        bad.bytes[15] = std::byte{0x54};
        const gpu::SliceResult& result = stand.feed({bad, tag(6)}, 100);
        CHECK(result.frames.received == 1);
        CHECK(result.frames.bad_marker == 1);
        CHECK(result.tag_counts == gpu::TagCounts{1, 0, 0, 1});
    }
}

TEST_CASE("tags: a flood of nothing else comes through whole and in order") {
    constexpr std::uint32_t slice = 150'000;
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Stand stand(backend, slice);
        Rng rng(5);
        std::vector<std::uint64_t> all;
        for (int i = 0; i < 4; ++i) {
            std::vector<RawFrame> frames;
            for (std::uint32_t k = 0; k < slice; ++k) {
                all.push_back(rng.between<std::uint64_t>(1000, 1 << 20));
                frames.push_back(tag(all.back(), k));
            }
            const gpu::SliceResult& result = stand.feed(frames, 0);
            CHECK(result.tags.empty());
            CHECK(result.pending_tags == all.size());
            CHECK(result.tag_counts.accepted == slice);
        }
        const gpu::SliceResult& result = stand.feed({}, UINT64_MAX, UINT64_MAX);
        std::sort(all.begin(), all.end());
        CHECK(times_of(result) == all);
    }
}

TEST_CASE("tags: the random cases have them") {
    std::size_t with = 0;
    std::size_t tags = 0;
    std::size_t frames = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Case c = make_case(Family::poisson_1, seed);
        std::size_t here = 0;
        for (const InputFrame& frame : c.frames)
            here += reference_convert(frame.raw, c.options, c.setup.calibration, {}).is_tag ? 1 : 0;
        with += here > 0 ? 1 : 0;
        tags += here;
        frames += c.frames.size();
    }
    CHECK(with > 15);
    CHECK(with < 40);
    CHECK(tags > frames / 10);
}
