// Ordering where very many singles have the same time: one sort of 64-bit keys (number of the time, crystal,
// energy) instead of two sorts of pairs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/convert.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

/// How crystal and energy lie in the low bits of a key. The energy window keeps most bits of an energy the
/// same.
struct ValuePacking {
    std::uint32_t lowest_energy = 0;  ///< bits of the lowest energy
    int energy_bits = 31;
    int crystal_bits = 32;
    [[nodiscard]] int bits() const { return energy_bits + crystal_bits; }

    static ValuePacking of(const PipelineOptions& options);
};

/// Scratch memory for the calls below, for up to `count` singles.
std::size_t run_scratch_bytes(std::uint32_t count);

/// numbers[i]: how many different times stand before that of single i. The times are in order.
void launch_number_times(void* scratch, std::size_t scratch_bytes, const std::uint64_t* time,
                         std::uint32_t count, std::uint32_t* numbers, cudaStream_t stream);

/// Singles in order, with `base` added to the times, from arrays in order of time whose values are lost. The
/// numbers of their times lie at the beginning of `out`; they are below 2^number_bits, and number_bits and
/// the packing's bits are at most 64 together.
void launch_order_runs(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                       int number_bits, const ValuePacking& packing, std::uint64_t base, Single* out,
                       cudaStream_t stream);

}  // namespace petacq::gpu::cuda
