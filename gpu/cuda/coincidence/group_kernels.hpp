// Where groups begin, by tiles of singles.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

/// Fills in the totals that tell which singles are decided: none when totals->long_run is set.
void launch_bounds(const SearchArguments& arguments, cudaStream_t stream);
/// Finds where the greedy scan enters each tile. Does nothing in window mode "every".
void launch_groups(const SearchArguments& arguments, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
