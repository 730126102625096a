// Ordering of the ready singles of a slice by (time, crystal, energy) on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/convert.hpp"
#include "gpu/sort/sort.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

/// As the sort engines take them: sorted by time, or by value.
inline sort::Pairs by_time(SingleArrays a) {
    return {a.time, a.value};
}
inline sort::Pairs by_value(SingleArrays a) {
    return {a.value, a.time};
}

/// Singles from arrays in order of time, with `base` added to the times. Equal times are put into the order
/// of their values, unless more than a few dozen are equal: then *long_run is set and they must be sorted by
/// value first.
void launch_pack(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                 std::uint32_t* long_run, cudaStream_t stream);
/// The same for arrays that are in total order.
void launch_pack_ordered(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                         cudaStream_t stream);

}  // namespace petacq::gpu::cuda
