// Counts the prompts of each window, and adds the decided singles to the sums.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

/// Lists the windows with records, and counts these: the delayeds, too.
void launch_counts(const SearchArguments& arguments, cudaStream_t stream);
/// Without a search: adds the decided singles to the sums.
void launch_add_singles(const SearchArguments& arguments, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
