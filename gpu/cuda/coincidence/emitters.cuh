// The lists of windows that yield records.
#pragma once

#include <cstdint>

#include "gpu/cuda/coincidence/find.hpp"
#include "gpu/cuda/coincidence/windows.cuh"

namespace petacq::gpu::cuda {

/// Lists the emitters of a tile in order. pairs[i] is the number of records of the tile's i-th single.
/// Contains barriers.
template <class Make>
__device__ void list_emitters(const std::uint32_t* pairs, std::uint32_t size, const EmitterLists& lists,
                              const Make& make) {
    __shared__ Compaction<find_threads, per_find_thread, 1> compaction;
    __shared__ WarpValues<std::uint64_t, find_threads> sums;
    std::uint32_t own[per_find_thread];
    std::uint32_t kind[per_find_thread];  // 0 marks an emitter
    std::uint64_t records = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < per_find_thread; ++k) {
        const std::uint32_t i = k * find_threads + threadIdx.x;
        own[k] = i < size ? pairs[i] : 0;
        kind[k] = own[k] > 0 ? 0 : 1;
        records += own[k];
    }
    std::uint32_t place[per_find_thread];
    std::uint32_t emitters[1];
    block_compact<find_threads>(kind, compaction, place, emitters);
    records =
        block_reduce<find_threads>(records, sums, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (threadIdx.x == 0) {
        lists.records[blockIdx.x] = records;
        lists.emitter_counts[blockIdx.x] = emitters[0];
    }
    Emitter* const out = lists.emitters + std::uint64_t{blockIdx.x} * single_tile;
#pragma unroll
    for (std::uint32_t k = 0; k < per_find_thread; ++k) {
        if (own[k] > 0) out[place[k]] = make(k * find_threads + threadIdx.x, own[k]);
    }
}

/// Adds the values of a whole warp to a counter in global memory.
__device__ inline void add_count(FindTotals* totals, CountIndex index, std::uint32_t value) {
    const std::uint32_t sum = __reduce_add_sync(all_lanes, value);
    if (threadIdx.x % 32 == 0 && sum > 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&totals->counts[index]),
                  static_cast<unsigned long long>(sum));
    }
}

}  // namespace petacq::gpu::cuda
