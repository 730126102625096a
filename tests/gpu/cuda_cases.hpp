// Inputs for the tests of what only the CUDA back-end can get wrong, and what comes out of a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "gpu/pipeline.hpp"
#include "tests/gpu/plan.hpp"

namespace petacq::test {

/// Whether CUDA can be used here; warns when not.
bool cuda_usable();

/// The window of the cases, ticks.
inline constexpr std::uint64_t cuda_tau = 400;

/// A random scanner, no energy filter, TakeWinnerOfGoods.
Case open_case(Rng& rng);

struct Frames {
    std::vector<RawFrame> raw;
    std::vector<std::uint64_t> times;
};
/// Frames of random crystals at 2^40 + time_of(i).
Frames frames_at(const Case& c, std::size_t count, const std::function<std::uint64_t(std::size_t)>& time_of,
                 Rng& rng, std::uint16_t lowest_adc = 900, std::uint16_t highest_adc = 1100);

struct Output {
    std::vector<gpu::Coincidence> coincidences;
    std::vector<gpu::Single> singles;
    gpu::SingleCounts counts;
    gpu::FrameCounts frames;
};
/// Feeds slices at the pipeline's depth.
Output feed(gpu::Pipeline& pipeline, const std::vector<gpu::Slice>& slices);
/// Frames whose times are in order: slices of `slice_frames`, the watermark at the first time to come.
Output feed(gpu::Pipeline& pipeline, const Frames& frames, std::size_t slice_frames);

inline gpu::FrameSpan span_of(const std::vector<RawFrame>& frames, std::size_t from, std::size_t count) {
    return {reinterpret_cast<const std::byte*>(frames.data() + from), static_cast<std::uint32_t>(count), 0,
            UINT64_MAX};
}

template <class Record>
bool same_bytes(const std::vector<Record>& a, const std::vector<Record>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Record)) == 0);
}

}  // namespace petacq::test
