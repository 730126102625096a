// A pass of a stream of frames through a pipeline in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/pipeline.hpp"
#include "tools/petbench/base/frames.hpp"

namespace petacq::bench {

/// Spans [from, to) that make up one slice.
struct Cut {
    std::size_t from;
    std::size_t to;
};
std::vector<Cut> cut(const Stream& stream, std::size_t slice_frames);

struct Pass {
    gpu::FrameCounts frames;
    gpu::SingleCounts singles;
    gpu::GammaCounts gammas;
    double seconds = 0;
    [[nodiscard]] double frames_per_s() const { return static_cast<double>(frames.received) / seconds; }
};
/// Keeps as many slices in flight as the pipeline takes. Resets the pipeline before. `spectra`: count
/// spectra.
Pass run_pass(const Stream& stream, const std::vector<Cut>& cuts, gpu::Pipeline& pipeline,
              bool spectra = false);

/// All of detector time.
inline constexpr gpu::TickRange always{0, UINT64_MAX};

}  // namespace petacq::bench
