// The CUDA back-end at its limits: destroyed with work under way, slices of which nothing is accepted, spans
// of a frame each, more singles than there is room for.
#ifdef PETACQ_CUDA

#include <cstring>
#include <stdexcept>
#include <string>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/pinned_memory.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/cuda_cases.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::FrameSpan;
using petacq::gpu::make_cuda_pipeline;
using petacq::gpu::make_host_pipeline;
using petacq::gpu::Slice;
using petacq::gpu::SliceResult;

constexpr std::uint64_t tau = cuda_tau;

Slice slice_of(const FrameSpan& span, std::uint64_t watermark) {
    Slice slice;
    slice.spans = {&span, 1};
    slice.watermark = watermark;
    return slice;
}

void check_same(const Output& got, const Output& want) {
    CHECK(got.counts == want.counts);
    CHECK(got.frames == want.frames);
    CHECK(same_bytes(got.singles, want.singles));
    CHECK(same_bytes(got.coincidences, want.coincidences));
}

}  // namespace

TEST_CASE("cuda: a pipeline may go while slices are under way") {
    if (!cuda_usable()) return;
    Rng rng(31);
    Case c = open_case(rng);
    constexpr std::size_t count = 200'000;
    const Frames frames = frames_at(
        c, count, [](std::size_t i) { return i * 150; }, rng);
    const auto memory = petacq::gpu::make_pinned_memory();
    std::byte* const data = memory->allocate(count * sizeof(RawFrame));
    std::memcpy(data, frames.raw.data(), count * sizeof(RawFrame));
    const FrameSpan span{data, count, 0, UINT64_MAX};
    c.options.max_slice_frames = count;
    for (const bool fails : {false, true}) {
        c.options.max_pending_singles = fails ? 1000 : 8 * count;
        for (int turn = 0; turn < 3; ++turn) {
            const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
            for (std::size_t i = 0; i < pipeline->depth(); ++i) {
                try {
                    // All of them wait for the watermark.
                    pipeline->submit(slice_of(span, 1));
                } catch (const std::runtime_error&) {
                    REQUIRE(fails);
                }
            }
        }
    }
    // The device is as it was.
    c.options.max_pending_singles = count;
    check_same(feed(*make_cuda_pipeline(c.options, c.setup.calibration), frames, count / 3),
               feed(*make_host_pipeline(c.options, c.setup.calibration), frames, count / 3));
}

TEST_CASE("cuda: slices of which nothing is accepted leave what was carried over") {
    if (!cuda_usable()) return;
    Rng rng(32);
    Case c = open_case(rng);
    c.options.rules.delay = 2000;
    const Frames good = frames_at(
        c, 20'000, [](std::size_t i) { return i * 150; }, rng);
    std::vector<RawFrame> refused;
    for (int i = 0; i < 100'000; ++i) {
        refused.push_back(good.raw[rng.index(good.raw.size())]);
        reinterpret_cast<std::uint8_t*>(&refused.back())[0] ^= 0xF0;  // head marker
    }
    const FrameSpan first = span_of(good.raw, 0, 10'000);
    const FrameSpan rest = span_of(good.raw, 10'000, 10'000);
    const FrameSpan nothing = span_of(refused, 0, refused.size());
    // Some wait for the watermark, others are carried over for their windows.
    const std::uint64_t watermark = good.times[9000];
    std::vector<Slice> slices{slice_of(first, watermark),
                              slice_of(nothing, watermark),
                              slice_of(nothing, watermark + tau / 2),
                              slice_of(nothing, good.times[9900]),
                              slice_of(nothing, good.times[10'000]),
                              slice_of(rest, good.times[19'000]),
                              slice_of(nothing, UINT64_MAX)};
    slices.back().close_at = UINT64_MAX;
    c.options.max_slice_frames = 100'000;
    c.options.max_pending_singles = 20'000;
    const Output want = feed(*make_host_pipeline(c.options, c.setup.calibration), slices);
    CHECK(want.counts.decided == good.raw.size());
    CHECK(want.frames.bad_marker == 5 * refused.size());
    check_same(feed(*make_cuda_pipeline(c.options, c.setup.calibration), slices), want);
}

TEST_CASE("cuda: very many spans of a frame each") {
    if (!cuda_usable()) return;
    Rng rng(33);
    Case c = open_case(rng);
    constexpr std::size_t count = 150'000;
    const Frames frames = frames_at(
        c, count, [](std::size_t i) { return i * 150; }, rng);
    std::vector<FrameSpan> spans;
    for (std::size_t i = 0; i < count; ++i) {
        spans.push_back(span_of(frames.raw, i, 1));
        if (rng.chance(0.1)) {  // a window that refuses the frame, or none
            spans.back().time_low = rng.chance(0.5) ? UINT64_MAX : 5;
            spans.back().time_high = spans.back().time_low == 5 ? 1 : UINT64_MAX;
        }
    }
    for (std::size_t i = spans.size(); i > 1; --i)
        std::swap(spans[i - 1], spans[rng.index(i)]);
    c.options.max_slice_frames = count;
    c.options.max_pending_singles = count;
    Slice slice;
    slice.spans = spans;
    slice.watermark = UINT64_MAX;
    slice.close_at = UINT64_MAX;
    for (const bool of_singles : {false, true}) {
        std::vector<petacq::gpu::Single> singles;
        if (of_singles) {
            c.options.input = petacq::gpu::Input::singles;
            for (std::size_t i = 0; i < count; ++i) {
                singles.push_back({frames.times[i],
                                   rng.between(0U, c.options.geometry.crystal_count()),  // one too many
                                   500});
            }
            for (std::size_t i = 0; i < count; ++i)
                spans[i].frames = reinterpret_cast<const std::byte*>(singles.data() + i);
        }
        const Output want = feed(*make_host_pipeline(c.options, c.setup.calibration), {slice});
        CHECK(want.frames.time_jump > count / 20);
        check_same(feed(*make_cuda_pipeline(c.options, c.setup.calibration), {slice}), want);
    }
}

TEST_CASE("cuda: groups of many singles under every policy") {
    if (!cuda_usable()) return;
    Rng rng(35);
    for (const std::uint64_t per_window : {9, 14, 33, 60, 130}) {
        Case c = open_case(rng);
        const Frames frames = frames_at(
            c, 6000, [=](std::size_t i) { return i * tau / per_window; }, rng);
        c.options.max_slice_frames = 3000;
        c.options.max_pending_singles = 6000;
        c.options.rules.max_multiplicity = 100;
        c.options.rules.min_module_difference = per_window == 14 ? 1 : 0;  // few groups are all good with it
        for (int policy = 0; policy < 6; ++policy) {
            c.options.rules.policy = static_cast<petacq::gpu::MultiplesPolicy>(policy);
            c.options.rules.delay.reset();
            if (policy % 2 == 0) c.options.rules.delay = 3000;
            INFO(per_window << " per window, " << name_of(c.options.rules.policy));
            check_same(feed(*make_cuda_pipeline(c.options, c.setup.calibration), frames, 3000),
                       feed(*make_host_pipeline(c.options, c.setup.calibration), frames, 3000));
        }
    }
}

TEST_CASE("cuda: more singles in one slice than there is room for end with a message") {
    if (!cuda_usable()) return;
    Rng rng(34);
    Case c = open_case(rng);
    // One single opens a window in which all others of the first slice stand: they are decided, and wait for
    // the watermark to pass them all the same.
    const Frames frames = frames_at(
        c, 1000, [](std::size_t i) { return i == 0 ? 0 : (i < 500 ? 10 : 1000); }, rng);
    c.options.max_slice_frames = 500;
    c.options.max_pending_singles = 100;
    const FrameSpan first = span_of(frames.raw, 0, 500);
    const FrameSpan second = span_of(frames.raw, 500, 500);
    const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
    SliceResult result;
    pipeline->submit(slice_of(first, frames.times[0] + 5 + tau));
    REQUIRE(pipeline->collect(result, true));
    CHECK(result.pending == 0);
    CHECK(result.counts.decided == 500);
    pipeline->submit(slice_of(second, frames.times[999] + 1));
    try {
        pipeline->collect(result, true);
        FAIL("999 singles were ordered in room for 600");
    } catch (const std::runtime_error& e) {
        CHECK(std::string(e.what()).find("max_pending_singles") != std::string::npos);
    }
}

#endif
