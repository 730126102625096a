// The limits of the CUDA back-end.
#pragma once

#include "gpu/conversion_tables.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Throws std::invalid_argument for options that the CUDA back-end cannot handle.
void check_options(const PipelineOptions& options);

/// Throws DeviceMemoryError when the present device has too little free memory.
void check_memory(const PipelineOptions& options, const OwnedTables& tables);

}  // namespace petacq::gpu::cuda
