// Ordering when very many singles share a time: one sort of 64-bit keys (rank of the time, crystal, energy)
// instead of two sorts of pairs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu/base/records.hpp"
#include "gpu/cuda/base/single_arrays.hpp"

namespace petacq::gpu::cuda {

/// The properties of the singles that determine how they can be packed into keys.
struct RunTotals {
    std::uint32_t last_number;  ///< the number of different times, minus one
    std::uint32_t
        highest_energy;  ///< as bits, which have the same order as the floats because none is negative
    std::uint32_t lowest_inverted;  ///< the inverted bits of the lowest energy
};

/// The layout of a key, from the top: rank of the time, crystal, energy. Only the bits in which energies
/// differ are stored.
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

/// Sets numbers[i] to the number of different times before that of single i. `sorted` is ordered by time.
/// Fills in the totals, which must be zero at the start. `count` is not 0.
void launch_number_times(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                         std::uint32_t* numbers, RunTotals* totals, cudaStream_t stream);

/// Writes the singles in total order, with `base` added to the times. The input arrays are ordered by time;
/// their values are overwritten. The ranks of the times are at the start of `out`. The packing has at most 64
/// bits.
void launch_order_runs(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                       const KeyPacking& packing, std::uint64_t base, Single* out, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
