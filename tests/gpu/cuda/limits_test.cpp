// The CUDA back-end at its limits: destroyed while it works, slices without an accepted frame, spans of one
// frame each, more singles than it has room for.
#ifdef PETACQ_CUDA

#include <cstring>
#include <stdexcept>
#include <string>

#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda/cases.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::DelayedRule;
using petacq::gpu::FrameSpan;
using petacq::gpu::make_cuda_pipeline;
using petacq::gpu::Slice;
using petacq::gpu::SliceResult;

}  // namespace

TEST_CASE("cuda: a pipeline may be destroyed while it works on slices") {
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
                    // All singles wait for the watermark.
                    pipeline->submit(slice_of({&span, 1}, 1));
                } catch (const std::runtime_error&) {
                    REQUIRE(fails);
                }
            }
        }
    }
    // The device works as before.
    c.options.max_pending_singles = count;
    check_against_cpu(c, frames, count / 3);
}

TEST_CASE("cuda: pinned memory has the pages that were asked for, or says why not") {
    if (!cuda_usable()) return;
    for (const bool huge_pages : {false, true}) {
        const auto memory = petacq::gpu::make_pinned_memory(huge_pages);
        constexpr std::size_t bytes = std::size_t{3} << 20;
        for (int block = 0; block < 2; ++block) {
            std::byte* const data = memory->allocate(bytes);
            CHECK(reinterpret_cast<std::uintptr_t>(data) % 4096 == 0);
            CHECK(data[bytes - 1] == std::byte{0});
            std::memset(data, 1, bytes);
        }
        const std::string text = memory->description();
        CAPTURE(text);
        const auto ordinary = petacq::net::make_host_memory({huge_pages, false});
        ordinary->allocate(bytes);
        CHECK((text.starts_with(ordinary->description() + std::string(", pinned by CUDA; ")) ||
               text.starts_with("3 MiB, pages of the driver, pinned by CUDA (")));
    }
}

TEST_CASE("cuda: slices without an accepted frame leave the singles that were carried over") {
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
    const std::vector<FrameSpan> first = {span_of(good.raw, 0, 10'000)};
    const std::vector<FrameSpan> rest = {span_of(good.raw, 10'000, 10'000)};
    const std::vector<FrameSpan> nothing = {span_of(refused, 0, refused.size())};
    // Some singles wait for the watermark, others are carried over because their windows are open.
    const std::uint64_t watermark = good.times[9000];
    c.options.max_slice_frames = 100'000;
    c.options.max_pending_singles = 20'000;
    const Output output = check_against_cpu(
        c, {slice_of(first, watermark), slice_of(nothing, watermark), slice_of(nothing, watermark + tau / 2),
            slice_of(nothing, good.times[9900]), slice_of(nothing, good.times[10'000]),
            slice_of(rest, good.times[19'000]), last_slice_of(nothing)});
    CHECK(output.counts.decided == good.raw.size());
    CHECK(output.frames.bad_marker == 5 * refused.size());
}

TEST_CASE("cuda: very many spans of one frame each") {
    if (!cuda_usable()) return;
    Rng rng(33);
    Case c = open_case(rng);
    constexpr std::size_t count = 150'000;
    const Frames frames = frames_at(
        c, count, [](std::size_t i) { return i * 150; }, rng);
    std::vector<FrameSpan> spans;
    for (std::size_t i = 0; i < count; ++i) {
        spans.push_back(span_of(frames.raw, i, 1));
        if (rng.chance(0.1)) {  // a window that rejects the frame, or an empty one
            spans.back().time_low = rng.chance(0.5) ? UINT64_MAX : 5;
            spans.back().time_high = spans.back().time_low == 5 ? 1 : UINT64_MAX;
        }
    }
    for (std::size_t i = spans.size(); i > 1; --i)
        std::swap(spans[i - 1], spans[rng.index(i)]);
    c.options.max_slice_frames = count;
    c.options.max_pending_singles = count;
    for (const bool of_singles : {false, true}) {
        petacq::gpu::RecordVector<petacq::gpu::Single> singles;
        if (of_singles) {
            c.options.input = petacq::gpu::Input::singles;
            for (std::size_t i = 0; i < count; ++i) {
                singles.push_back(
                    {frames.times[i],
                     rng.between(0U, c.options.geometry.crystal_count()),  // the largest is one too large
                     500});
            }
            for (std::size_t i = 0; i < count; ++i)
                spans[i].frames = reinterpret_cast<const std::byte*>(singles.data() + i);
        }
        CHECK(check_against_cpu(c, {last_slice_of(spans)}).frames.time_jump > count / 20);
    }
}

namespace {

void check_large_groups(bool long_form) {
    Rng rng(35);
    for (const std::uint64_t per_window : {9, 14, 33, 60, 130}) {
        Case c = long_form ? open_long_case(rng) : open_case(rng);
        const Frames frames = frames_at(
            c, 6000, [=](std::size_t i) { return i * tau / per_window; }, rng);
        c.options.max_slice_frames = 3000;
        c.options.max_pending_singles = 6000;
        c.options.rules.max_multiplicity = 100;
        // With it, few groups consist of good pairs only.
        if (per_window == 14 && c.options.geometry.modules_around() > 0)
            c.options.rules.min_module_difference = 1;
        for (int policy = 0; policy < 6; ++policy) {
            c.options.rules.policy = static_cast<petacq::gpu::MultiplesPolicy>(policy);
            c.options.rules.delay = policy % 2 == 0 ? 3000 : 450;
            c.options.rules.delayeds =
                per_window == 33 ? DelayedRule::delayed_window : DelayedRule::shifted_group;
            INFO(per_window << " per window, " << name_of(c.options.rules.policy));
            check_against_cpu(c, frames, 3000);
        }
    }
}

}  // namespace

TEST_CASE("cuda: groups of many singles under every policy") {
    if (!cuda_usable()) return;
    check_large_groups(false);
}

TEST_CASE("cuda: groups of many singles in any arrangement of crystals") {
    if (!cuda_usable()) return;
    check_large_groups(true);
}

TEST_CASE("cuda: more singles in one slice than there is room for stop the pipeline with a message") {
    if (!cuda_usable()) return;
    Rng rng(34);
    Case c = open_case(rng);
    // The window of the first single contains all others of the first slice: they are decided, but still wait
    // for the watermark.
    const Frames frames = frames_at(
        c, 1000, [](std::size_t i) { return i == 0 ? 0 : (i < 500 ? 10 : 1000); }, rng);
    c.options.max_slice_frames = 500;
    c.options.max_pending_singles = 100;
    const FrameSpan first = span_of(frames.raw, 0, 500);
    const FrameSpan second = span_of(frames.raw, 500, 500);
    const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
    SliceResult result;
    pipeline->submit(slice_of({&first, 1}, frames.times[0] + 5 + tau));
    REQUIRE(pipeline->collect(result, true));
    CHECK(result.pending == 0);
    CHECK(result.counts.decided == 500);
    pipeline->submit(slice_of({&second, 1}, frames.times[999] + 1));
    try {
        pipeline->collect(result, true);
        FAIL("999 singles were ordered in room for 600");
    } catch (const std::runtime_error& e) {
        CHECK(std::string(e.what()).find("max_pending_singles") != std::string::npos);
    }
}

#endif
