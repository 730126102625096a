// Counts the delayeds of each window, by either rule.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

void launch_delayed_counts(const SearchArguments& arguments, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
