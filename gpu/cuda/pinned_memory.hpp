// Pinned host memory for the batch pool. The GPU copies directly from it at the full rate of the bus.
#pragma once

#include <memory>

#include "net/batch.hpp"

namespace petacq::gpu {

/// Allocates page-locked memory through the CUDA driver. The memory lives as long as the source. allocate()
/// throws std::runtime_error with the driver's reason.
std::unique_ptr<net::MemorySource> make_pinned_memory();

}  // namespace petacq::gpu
