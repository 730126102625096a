// Several devices for one stream. The property suite runs on two (backends.cpp); here are the cases that only
// several can get wrong. On a host with one GPU, that one stands for all of them.
#ifdef PETACQ_CUDA

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda/cases.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::FrameSpan;
using petacq::gpu::make_cuda_pipeline;
using petacq::gpu::SliceResult;

using Devices = std::vector<std::uint32_t>;

Case small_case(Rng& rng) {
    Case c = open_case(rng);
    c.options.max_slice_frames = 20'000;
    c.options.max_pending_singles = 100'000;
    c.options.devices = two_devices();
    return c;
}

std::string failure_of(petacq::gpu::Pipeline& pipeline, std::size_t slices) {
    SliceResult result;
    try {
        for (std::size_t i = 0; i < slices; ++i)
            pipeline.collect(result, true);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("cuda: the output is the same for any number of devices") {
    if (!cuda_usable()) return;
    Rng rng(41);
    Case c = open_case(rng);
    c.options.rules.delay = 3 * tau + 1;
    constexpr std::size_t count = 300'000;
    // Every time has a few singles of different slices, and the watermark is far behind, so that many wait.
    Frames frames = frames_at(
        c, count, [](std::size_t i) { return i / 2 * 150; }, rng);
    constexpr std::size_t slice = 7'000;
    std::vector<FrameSpan> spans;
    for (std::size_t from = 0; from < count; from += slice)
        spans.push_back(span_of(frames.raw, from, std::min(slice, count - from)));
    std::vector<petacq::gpu::Slice> slices;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const std::span one(&spans[i], 1);
        const bool last = i + 1 == spans.size();
        const std::uint64_t behind = frames.times[i < 3 ? 0 : (i - 3) * slice + rng.index(slice)];
        slices.push_back(last ? last_slice_of(one) : slice_of(one, behind));
    }
    for (std::size_t i = 1; i < slices.size(); ++i)
        slices[i].watermark = std::max(slices[i].watermark, slices[i - 1].watermark);
    c.options.max_slice_frames = slice;
    c.options.max_pending_singles = 6 * slice;
    const Output expected = feed(*petacq::gpu::make_cpu_pipeline(c.options, c.setup.calibration), slices);
    CHECK(expected.counts.decided == count);
    const std::uint32_t other = two_devices().back();
    for (const Devices& devices :
         {Devices{}, Devices{0}, Devices{other}, Devices{0, other}, Devices{other, 0}, Devices{0, other, 0},
          Devices{other, 0, other, 0}, Devices(16, 0)}) {
        c.options.devices = devices;
        const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
        INFO(devices.size() << " devices, " << pipeline->description());
        const Output output = feed(*pipeline, slices);
        CHECK(output.counts == expected.counts);
        CHECK(output.frames == expected.frames);
        CHECK((output.sums == expected.sums));
        CHECK(same_bytes(output.singles, expected.singles));
        CHECK(same_bytes(output.coincidences, expected.coincidences));
    }
}

TEST_CASE("cuda: a pipeline of several devices names them, and counts the memory of all") {
    if (!cuda_usable()) return;
    Rng rng(42);
    Case c = small_case(rng);
    const auto two = make_cuda_pipeline(c.options, c.setup.calibration);
    c.options.devices = {0};
    const auto one = make_cuda_pipeline(c.options, c.setup.calibration);
    CHECK(two->memory_bytes() > one->memory_bytes());
    CHECK(contains(two->description(), "cuda, 0 "));
    CHECK(contains(two->description(), " and " + std::to_string(two_devices().back()) + " "));
    CHECK(contains(two->description(), " MiB on the devices"));
    CHECK_FALSE(contains(one->description(), " and "));
    CHECK(two->depth() % 2 == 0);
}

TEST_CASE("cuda: a device that is not there is refused by its number") {
    if (!cuda_usable()) return;
    Rng rng(43);
    Case c = small_case(rng);
    c.options.devices = {0, 999};
    CHECK(contains(petacq::gpu::cuda_unusable_reason(c.options.devices).value_or(""), "no device 999"));
    try {
        make_cuda_pipeline(c.options, c.setup.calibration);
        FAIL("device 999 was accepted");
    } catch (const std::runtime_error& e) {
        CHECK(contains(e.what(), "no device 999"));
    }
    CHECK_FALSE(petacq::gpu::cuda_unusable_reason(two_devices()));
}

TEST_CASE("cuda: memory that a further device does not have is missed there") {
    if (!cuda_usable()) return;
    Rng rng(44);
    Case c = small_case(rng);
    c.options.max_slice_frames = 1U << 27;
    try {
        // So many slices in flight that even the largest GPU lacks the memory.
        c.options.devices = Devices(8, 0);
        make_cuda_pipeline(c.options, c.setup.calibration);
        WARN("a GPU with hundreds of GiB: the refusal was not tested");
    } catch (const std::runtime_error& e) {
        CHECK(contains(e.what(), "MiB of GPU memory on device 0"));
    }
}

TEST_CASE("cuda: the failure of a further device stops the pipeline with a message") {
    if (!cuda_usable()) return;
    Rng rng(45);
    const Case c = small_case(rng);
    const Frames frames = frames_at(
        c, 40'000, [](std::size_t i) { return i * 150; }, rng);
    const FrameSpan good = span_of(frames.raw, 0, 20'000);
    const FrameSpan long_one = span_of(frames.raw, 0, 40'000);
    for (const std::size_t bad : {1, 3}) {  // on the second device
        const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
        for (std::size_t i = 0; i <= bad; ++i)
            pipeline->submit(slice_of({i == bad ? &long_one : &good, 1}, 1));
        CHECK(contains(failure_of(*pipeline, bad + 1), "max_slice_frames"));
        CHECK_THROWS_AS(pipeline->submit(slice_of({&good, 1}, 1)), std::runtime_error);
        SliceResult result;
        CHECK_THROWS_AS(pipeline->collect(result, true), std::runtime_error);
    }
    // The devices work as before.
    CHECK(check_against_cpu(c, {slice_of({&good, 1}, 1), last_slice_of({&good, 1})}).frames.accepted > 0);
}

TEST_CASE("cuda: an error names the device") {
    if (!cuda_usable()) return;
    const std::uint32_t other = two_devices().back();
    const petacq::gpu::cuda::OnDevice on(static_cast<int>(other));
    try {
        petacq::gpu::cuda::check(cudaErrorIllegalAddress, "cudaEventSynchronize", "converting frames");
        FAIL("an error passed");
    } catch (const std::runtime_error& e) {
        CHECK(contains(e.what(), "cudaEventSynchronize failed on device " + std::to_string(other) +
                                     " while converting frames: "));
    }
}

TEST_CASE("cuda: frames that a further device cannot read fail the pipeline, which names the device") {
    if (!cuda_usable()) return;
    Rng rng(46);
    const Case c = small_case(rng);
    const Frames frames = frames_at(
        c, 20'000, [](std::size_t i) { return i * 150; }, rng);
    const FrameSpan good = span_of(frames.raw, 0, 20'000);
    // The span ends far behind the memory, which CUDA knows because it is its own.
    petacq::gpu::cuda::Memory memory(petacq::gpu::cuda::Memory::Purpose::use);
    const FrameSpan unreadable{memory.zeros<std::byte>(4096), 20'000, 0, UINT64_MAX};
    const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
    pipeline->submit(slice_of({&good, 1}, 1));
    pipeline->submit(slice_of({&unreadable, 1}, 1));
    const std::string failure = failure_of(*pipeline, 2);
    INFO(failure);
    CHECK(contains(failure, "on device " + std::to_string(two_devices().back())));
    CHECK(contains(failure, "copying frames"));
    CHECK_THROWS_AS(pipeline->submit(slice_of({&good, 1}, 1)), std::runtime_error);
}

#endif
