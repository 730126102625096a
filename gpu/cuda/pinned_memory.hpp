// Pinned host memory for the batch pool: the GPU copies straight from it, at the rate of the bus.
#pragma once

#include <memory>

#include "net/batch.hpp"

namespace petacq::gpu {

/// Page-locked memory of the CUDA driver, for the life of the source. allocate() throws std::runtime_error
/// with the driver's reason.
std::unique_ptr<net::MemorySource> make_pinned_memory();

}  // namespace petacq::gpu
