// Slices of singles instead of frames.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/convert/convert_kernels.hpp"

namespace petacq::gpu::cuda {

/// Like launch_convert(), for cells with singles of a scanner with `crystals` crystals. Of the histograms it
/// fills only per_crystal.
void launch_take_singles(const ConvertArguments& arguments, std::uint32_t crystals, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
