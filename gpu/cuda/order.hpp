// Ordering of the ready singles of a slice by (time, crystal, energy) on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/convert.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

/// Scratch memory in bytes that sorting up to `count` singles needs.
std::size_t sort_scratch_bytes(std::uint32_t count);

/// Sorts by the low `bits` bits of the time; stable. The input stays as it is.
void launch_sort(void* scratch, std::size_t scratch_bytes, SingleArrays in, SingleArrays out,
                 std::uint32_t count, int bits, cudaStream_t stream);
/// Sorts by the low `bits` bits of the value; stable.
void launch_sort_by_value(void* scratch, std::size_t scratch_bytes, SingleArrays in, SingleArrays out,
                          std::uint32_t count, int bits, cudaStream_t stream);

/// Singles from sorted arrays, with `base` added to the times. Equal times are put into the order of their
/// values, unless more than a few dozen are equal: then *long_run is set and they must be sorted by value
/// first.
void launch_pack(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                 std::uint32_t* long_run, cudaStream_t stream);
/// The same for arrays that are in total order.
void launch_pack_ordered(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                         cudaStream_t stream);

}  // namespace petacq::gpu::cuda
