// A pass of a stream of frames through a pipeline in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/pipeline.hpp"

namespace petacq::bench {

/// Slices of at most `slice_frames` frames, which use these spans. The last one ends the data. `watermarks`
/// [span]: no later span holds an earlier time.
std::vector<gpu::Slice> cut(std::span<const gpu::FrameSpan> spans, std::span<const std::uint64_t> watermarks,
                            std::size_t slice_frames);

struct Pass {
    gpu::FrameCounts frames;
    gpu::SingleCounts singles;
    gpu::GammaCounts gammas;
    double seconds = 0;
    [[nodiscard]] double frames_per_s() const { return static_cast<double>(frames.received) / seconds; }
};
/// Keeps as many slices in flight as the pipeline takes. Resets the pipeline before. `spectra`: count
/// spectra.
Pass run_pass(const std::vector<gpu::Slice>& slices, gpu::Pipeline& pipeline, bool spectra = false);

}  // namespace petacq::bench
