// The CUDA back-end of the pipeline: the same bytes as the CPU back-end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Why CUDA cannot be used here, in words for the log ("no CUDA device: ..."); empty when it can.
std::optional<std::string> cuda_unusable_reason();

/// The CUDA back-end on the first device. Everything is allocated here, from max_slice_frames and
/// max_pending_singles. Frames in pinned memory are copied straight from it; others more slowly. Two threads
/// of its own launch the work and make the results; up to four of `threads` copy large results. Throws
/// std::invalid_argument for options that cannot be, std::runtime_error when there is no usable device,
/// DeviceMemoryError when its memory does not suffice.
std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration);

}  // namespace petacq::gpu
