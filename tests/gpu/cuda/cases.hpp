// Shared by the tests of the CUDA back-end: inputs, and the comparison with the CPU back-end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "gpu/pipeline.hpp"
#include "tests/gpu/plan.hpp"

namespace petacq::test {

/// The coincidence window of the cases, ticks.
inline constexpr std::uint64_t tau = 400;

/// A random scanner, no energy filter, TakeWinnerOfGoods.
Case open_case(Rng& rng);
/// The same for a scanner of the long form.
Case open_long_case(Rng& rng);

struct Frames {
    std::vector<RawFrame> raw;
    std::vector<std::uint64_t> times;
};
/// Frames of random crystals at 2^40 + time_of(i).
Frames frames_at(const Case& c, std::size_t count, const std::function<std::uint64_t(std::size_t)>& time_of,
                 Rng& rng, std::uint16_t lowest_adc = 900, std::uint16_t highest_adc = 1100);

struct Output {
    gpu::RecordVector<gpu::Coincidence> coincidences;
    gpu::RecordVector<gpu::Single> singles;
    gpu::SingleCounts counts;
    gpu::FrameCounts frames;
    std::vector<gpu::IntervalSums> sums;
};
/// Feeds slices at the pipeline's depth. The last one ends an interval, and some before it.
Output feed(gpu::Pipeline& pipeline, const std::vector<gpu::Slice>& slices);

/// Feeds the slices to the CPU and to the CUDA back-end, with one device and with two, checks that everything
/// agrees, and returns the output.
Output check_against_cpu(const Case& c, const std::vector<gpu::Slice>& slices);
/// The same for frames in the order of their times: slices of `slice_frames` frames, each with the time of
/// the next frame as its watermark.
Output check_against_cpu(const Case& c, const Frames& frames, std::size_t slice_frames);

inline gpu::Slice slice_of(const std::span<const gpu::FrameSpan> spans, std::uint64_t watermark) {
    gpu::Slice slice;
    slice.spans = spans;
    slice.watermark = watermark;
    return slice;
}
/// The last slice of a run.
inline gpu::Slice last_slice_of(const std::span<const gpu::FrameSpan> spans) {
    gpu::Slice slice = slice_of(spans, UINT64_MAX);
    slice.close_at = UINT64_MAX;
    return slice;
}

inline gpu::FrameSpan span_of(const std::vector<RawFrame>& frames, std::size_t from, std::size_t count) {
    return {reinterpret_cast<const std::byte*>(frames.data() + from), static_cast<std::uint32_t>(count), 0,
            UINT64_MAX};
}

template <class Record>
bool same_bytes(const gpu::RecordVector<Record>& a, const gpu::RecordVector<Record>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Record)) == 0);
}

}  // namespace petacq::test
