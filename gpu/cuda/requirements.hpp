// The limits of the CUDA back-end.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/conversion_tables.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Throws std::invalid_argument for options that the CUDA back-end cannot handle.
void check_options(const PipelineOptions& options);

/// The number of the current device of the calling thread.
std::uint32_t current_device();

/// Lets the first of the devices copy from the others directly, where it can. Elsewhere CUDA takes the way
/// through the host: false.
bool connect_devices(const std::vector<std::uint32_t>& devices);

/// Throws DeviceMemoryError when one of options.devices has too little free memory.
void check_memory(const PipelineOptions& options, const OwnedTables& tables);

}  // namespace petacq::gpu::cuda
