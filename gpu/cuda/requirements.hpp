// The limits of the CUDA back-end.
#pragma once

#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Throws std::invalid_argument for options that the CUDA back-end cannot handle.
void check_options(const PipelineOptions& options);

}  // namespace petacq::gpu::cuda
