// Ordering where very many singles have the same time: one sort of 64-bit keys (number of the time, crystal,
// energy) instead of two sorts of pairs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/convert.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

/// What is to be known of singles before they can be packed into keys.
struct RunTotals {
    std::uint32_t last_number;      ///< how many different times there are, less one
    std::uint32_t highest_energy;   ///< as bits: those of floats that are not negative order as they do
    std::uint32_t lowest_inverted;  ///< all bits of the lowest energy the other way round
};

/// How number of the time, crystal and energy lie in a key, from the top; of the energies only what differs.
struct KeyPacking {
    std::uint32_t lowest_energy = 0;
    int energy_bits = 31;
    int crystal_bits = 32;
    int number_bits = 0;
    [[nodiscard]] int bits() const { return energy_bits + crystal_bits + number_bits; }

    static KeyPacking of(const RunTotals& totals, std::uint32_t crystals);
};

/// Scratch memory for the calls below, for up to `count` singles.
std::size_t run_scratch_bytes(std::uint32_t count);

/// numbers[i]: how many different times stand before that of single i; `sorted` is in order of time. Fills in
/// the totals, which begin as zero. `count` is not 0.
void launch_number_times(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                         std::uint32_t* numbers, RunTotals* totals, cudaStream_t stream);

/// Singles in order, with `base` added to the times, from arrays in order of time, whose values are lost. The
/// numbers of their times lie at the beginning of `out`. The packing has at most 64 bits.
void launch_order_runs(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                       const KeyPacking& packing, std::uint64_t base, Single* out, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
