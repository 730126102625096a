// The kernels of the projector on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// Rows, image and sums in device memory.
struct DeviceRows {
    Box box;
    TofWeights tof;
    const config::CrystalPlace* places;
    config::DepthOfEach depths = {config::DepthOfInteraction::fixed(0)};
    const Pair* pairs;
    const std::int16_t* bins;  ///< null: none
    const float* prompts;
    const float* additive;
    const float* image;
    std::uint64_t* sums;  ///< [voxel] image * A^T (prompts / expected), in units of 1 / `scale`
    double scale;
};

/// Number of results of compare_rows(), one for each of its blocks.
std::size_t compared_blocks(std::size_t rows);
/// Writes how the rows begin..end compare to `out`, device memory, and adds to the sums if asked to. The work
/// is queued on the stream. Throws std::runtime_error when it cannot be launched.
void compare_rows(const DeviceRows& rows, std::size_t begin, std::size_t end, bool back, Compared* out,
                  cudaStream_t stream);
/// back = sums / scale / image, 0 where the image is 0; likewise.
void back_of_sums(const DeviceRows& rows, std::size_t voxels, float* back, cudaStream_t stream);

}  // namespace petacq::image
