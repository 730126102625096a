// Ordering of the ready singles of a slice by (time, crystal, energy) on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/base/records.hpp"
#include "gpu/cuda/base/single_arrays.hpp"
#include "gpu/sort/sort.hpp"

namespace petacq::gpu::cuda {

/// The input of the sort engines: sorts by time, or by value.
inline sort::Pairs by_time(SingleArrays a) {
    return {a.time, a.value};
}
inline sort::Pairs by_value(SingleArrays a) {
    return {a.value, a.time};
}

/// Makes singles from arrays ordered by time and adds `base` to the times. Singles of equal time are ordered
/// by value, unless more than a few dozen share it: then *long_run is set, and the caller must sort them by
/// value first.
void launch_pack(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                 std::uint32_t* long_run, cudaStream_t stream);
/// The same for arrays in total order.
void launch_pack_ordered(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                         cudaStream_t stream);

}  // namespace petacq::gpu::cuda
