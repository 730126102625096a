// The kernel that fills the rows of a system matrix on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tools/petlm/reconstruction/projector/ray.hpp"

namespace petacq::image {

/// Writes voxel and length of every cell of each line, from row_start[line] on. All pointers are device
/// pointers; the work is queued on the stream. Throws std::runtime_error when it cannot be launched.
void trace_rows(const Box& box, const config::CrystalPlace* places, const config::DepthOfInteraction& depth,
                const Pair* pairs, const std::int32_t* row_start, std::uint32_t lines, std::int32_t* voxel,
                float* length, cudaStream_t stream);

}  // namespace petacq::image
