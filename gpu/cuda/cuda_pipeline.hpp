// The CUDA back-end of the pipeline: the same bytes as the CPU back-end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// The reason why CUDA cannot be used on this host, as text for the log; empty when it can.
std::optional<std::string> cuda_unusable_reason();

/// Devices of this host. REQUIRES: CUDA can be used.
unsigned gpu_count();
/// The PCI address of a device. Throws std::runtime_error.
std::string gpu_address(unsigned device);
/// Makes a device the current one of the calling thread. Throws std::runtime_error.
void use_gpu(unsigned device);

/// The CUDA back-end on the current device of the calling thread, which must be the one that uses it. It
/// allocates all its memory here, sized by max_slice_frames and max_pending_singles. Frames in pinned memory
/// are copied directly; others more slowly. The back-end has three threads of its own, which copy frames,
/// launch the work and assemble the results; up to eight of `threads` take part in large results. A slice of
/// more than max_slice_frames frames fails the pipeline. Throws std::invalid_argument for invalid options,
/// std::runtime_error when there is no usable device, DeviceMemoryError when the device has too little
/// memory.
std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration);

}  // namespace petacq::gpu
