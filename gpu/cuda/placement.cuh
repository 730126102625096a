// Where a converted single goes: to those that can be ordered, or to those that wait for the watermark.
#pragma once

#include <cstdint>

#include "gpu/cuda/convert.hpp"

namespace petacq::gpu::cuda {

constexpr unsigned all_lanes = 0xFFFFFFFF;

enum Destination : std::uint32_t { nowhere, to_ready, to_pending };

struct Placed {
    std::uint64_t time;
    std::uint64_t value;
    Destination destination;
};

__device__ inline std::uint64_t value_of(std::uint32_t crystal, float energy) {
    return std::uint64_t{crystal} << 32 | __float_as_uint(energy);
}

__device__ inline Destination destination_of(const ConvertArguments& a, std::uint64_t time) {
    return a.all_ready || time < a.watermark ? to_ready : to_pending;
}

/// Room for what the block has placed; two barriers.
template <std::uint32_t N>
__device__ void write_placed(const ConvertArguments& a, const Placed (&placed)[N], std::uint32_t* block_count,
                             std::uint32_t* block_base) {
    const std::uint32_t lane = threadIdx.x % 32;
    unsigned ready[N];
    unsigned pending[N];
    std::uint32_t ready_count = 0;
    std::uint32_t pending_count = 0;
    for (std::uint32_t k = 0; k < N; ++k) {
        ready[k] = __ballot_sync(all_lanes, placed[k].destination == to_ready);
        pending[k] = __ballot_sync(all_lanes, placed[k].destination == to_pending);
        ready_count += __popc(ready[k]);
        pending_count += __popc(pending[k]);
    }
    std::uint32_t ready_at = 0;
    std::uint32_t pending_at = 0;
    if (lane == 0) {
        ready_at = atomicAdd(&block_count[0], ready_count);
        pending_at = atomicAdd(&block_count[1], pending_count);
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        std::uint32_t* total = threadIdx.x == 0 ? &a.totals->ready : &a.totals->pending;
        const std::uint32_t count = block_count[threadIdx.x];
        block_base[threadIdx.x] = count == 0 ? 0 : atomicAdd(total, count);
    }
    __syncthreads();
    ready_at = block_base[0] + __shfl_sync(all_lanes, ready_at, 0);
    pending_at = block_base[1] + __shfl_sync(all_lanes, pending_at, 0);
    const unsigned below = (1U << lane) - 1;
    for (std::uint32_t k = 0; k < N; ++k) {
        if (placed[k].destination == to_ready) {
            const std::uint32_t at = ready_at + __popc(ready[k] & below);
            a.ready.time[at] = placed[k].time - a.base;
            a.ready.value[at] = placed[k].value;
        } else if (placed[k].destination == to_pending) {
            const std::uint32_t at = pending_at + __popc(pending[k] & below);
            a.pending.time[at] = placed[k].time;
            a.pending.value[at] = placed[k].value;
        }
        ready_at += __popc(ready[k]);
        pending_at += __popc(pending[k]);
    }
}

__device__ inline void add_maxima(ConvertTotals* totals, std::uint64_t key, std::uint64_t pending_time) {
    for (int step = 16; step > 0; step /= 2) {
        key = max(key, static_cast<std::uint64_t>(__shfl_xor_sync(all_lanes, key, step)));
        pending_time =
            max(pending_time, static_cast<std::uint64_t>(__shfl_xor_sync(all_lanes, pending_time, step)));
    }
    if (threadIdx.x % 32 != 0) return;
    if (key > 0) atomicMax(reinterpret_cast<unsigned long long*>(&totals->max_key), key);
    if (pending_time > 0) {
        atomicMax(reinterpret_cast<unsigned long long*>(&totals->max_pending_time), pending_time);
    }
}

__device__ inline void track_maxima(const ConvertArguments& a, const Placed& p, std::uint64_t& key,
                                    std::uint64_t& pending_time) {
    if (p.destination == to_ready) key = max(key, p.time - a.base);
    if (p.destination == to_pending) pending_time = max(pending_time, p.time);
}

}  // namespace petacq::gpu::cuda
