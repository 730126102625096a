// The CUDA back-end of the pipeline: the same bytes as the CPU back-end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// The reason why CUDA cannot be used on these devices of this host, as text for the log; empty when it can.
/// No devices: the current one of the calling thread. The first of the devices becomes the current one.
std::optional<std::string> cuda_unusable_reason(const std::vector<std::uint32_t>& devices = {});

/// Devices of this host; 0 where CUDA does not work.
unsigned gpu_count();
/// The PCI address of a device. Throws std::runtime_error.
std::string gpu_address(unsigned device);

/// The CUDA back-end on PipelineOptions::devices. It allocates all its memory here, sized by max_slice_frames
/// and max_pending_singles. Frames in pinned memory are copied directly; others more slowly. The back-end has
/// two threads of its own, which launch the work and assemble the results, and one for each device, which
/// copies frames; up to eight of `threads` take part in large results. A slice of more than max_slice_frames
/// frames fails the pipeline, and so does any device that fails. Throws std::invalid_argument for invalid
/// options, std::runtime_error when a device cannot be used, DeviceMemoryError when one has too little
/// memory.
std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration);

}  // namespace petacq::gpu
