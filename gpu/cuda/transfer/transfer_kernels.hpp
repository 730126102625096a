// Kernels at both ends of the bus.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/base/layout.hpp"
#include "gpu/cuda/slice/record_packing.hpp"

namespace petacq::gpu::cuda {

/// Copies from pinned host memory. A small copy costs the copy engine several microseconds in which no frame
/// goes up; a kernel reads the memory while the engine goes on. Addresses and `bytes` are multiples of 16.
void launch_fetch(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream);

/// Writes the records to `out` as they cross the bus. Does nothing when there are more than `room`.
void launch_pack_records(const SearchTotals* totals, const Coincidence* records, std::uint32_t room,
                         const RecordPacking& packing, std::byte* out, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
