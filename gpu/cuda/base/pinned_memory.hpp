// Pinned host memory for the batch pool. The GPU copies directly from it at the full rate of the bus.
#pragma once

#include <memory>

#include "net/batch.hpp"

namespace petacq::gpu {

/// The memory of net::make_host_memory(), with the same pages, which the CUDA driver locks; where it cannot,
/// memory that the driver allocates. The memory lives as long as the source, and nothing may be copied from
/// or to it any more when the source goes. allocate() throws std::runtime_error with the reason.
std::unique_ptr<net::MemorySource> make_pinned_memory(bool huge_pages = false);

}  // namespace petacq::gpu
