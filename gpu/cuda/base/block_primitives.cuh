// Cooperative operations of a warp or a block: scans, reductions, compaction, histograms, searches.
//
// All threads of a one-dimensional block of `threads` threads, a multiple of 32, call the functions named
// block_*, which contain barriers. On return all threads may read the results and reuse the storage.
#pragma once

#include <cstdint>

namespace petacq::gpu::cuda {

inline constexpr std::uint32_t warp_threads = 32;
inline constexpr unsigned all_lanes = 0xFFFFFFFF;

__device__ inline std::uint32_t lane() {
    return threadIdx.x % warp_threads;
}
__device__ inline unsigned lanes_below() {
    return (1U << lane()) - 1;
}

/// The sum of the values of this lane and those below. All lanes of the warp take part, here and in the
/// functions below.
template <class T>
__device__ T warp_inclusive_sum(T value) {
#pragma unroll
    for (std::uint32_t step = 1; step < warp_threads; step *= 2) {
        const T before = __shfl_up_sync(all_lanes, value, step);
        if (lane() >= step) value += before;
    }
    return value;
}

/// Combines all values of the warp with op, in every lane; op is associative and commutative.
template <class T, class Op>
__device__ T warp_reduce(T value, const Op& op) {
#pragma unroll
    for (std::uint32_t step = warp_threads / 2; step > 0; step /= 2)
        value = op(value, __shfl_xor_sync(all_lanes, value, step));
    return value;
}

/// The lanes whose labels have the same low `bits` bits.
template <int bits>
__device__ unsigned warp_peers(std::uint32_t label) {
    unsigned peers = all_lanes;
#pragma unroll
    for (int bit = 0; bit < bits; ++bit) {
        const bool set = (label >> bit & 1) != 0;
        const unsigned with = __ballot_sync(all_lanes, set);
        peers &= set ? with : ~with;
    }
    return peers;
}

/// The first index in [low, high) without `holds`, or high. `holds` is true for a leading part only.
template <class Holds>
__device__ std::uint32_t partition_point(std::uint32_t low, std::uint32_t high, const Holds& holds) {
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (holds(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// The same for a whole warp, with 32 probes at a time. Every lane gets the result.
template <class Holds>
__device__ std::uint32_t warp_partition_point(std::uint32_t low, std::uint32_t high, const Holds& holds) {
    while (low < high) {
        const std::uint32_t step = (high - low + 31) / 32;
        const std::uint64_t probe = low + std::uint64_t{lane()} * step;
        const bool held = probe < high && holds(static_cast<std::uint32_t>(probe));
        const auto count = static_cast<std::uint32_t>(__popc(__ballot_sync(all_lanes, held)));
        if (count == 0) {
            high = low;
        } else {
            const std::uint64_t beyond = low + std::uint64_t{count} * step;
            low += (count - 1) * step + 1;
            high = beyond < high ? static_cast<std::uint32_t>(beyond) : high;
        }
    }
    return low;
}

/// One value per warp, in shared memory.
template <class T, std::uint32_t threads>
struct WarpValues {
    static_assert(threads % warp_threads == 0 && threads <= 1024);
    T of[threads / warp_threads];
};

/// The sum of the values of this thread and those before it. Sets `total` to the sum of all.
template <std::uint32_t threads, class T>
__device__ T block_inclusive_sum(T value, WarpValues<T, threads>& storage, T& total) {
    const T inclusive = warp_inclusive_sum(value);
    const std::uint32_t warp = threadIdx.x / warp_threads;
    if (lane() == warp_threads - 1) storage.of[warp] = inclusive;
    __syncthreads();
    T before = 0;
    total = 0;
#pragma unroll 8
    for (std::uint32_t w = 0; w < threads / warp_threads; ++w) {
        if (w < warp) before += storage.of[w];
        total += storage.of[w];
    }
    __syncthreads();
    return before + inclusive;
}

/// The sum of the values of the threads before this one.
template <std::uint32_t threads, class T>
__device__ T block_exclusive_sum(T value, WarpValues<T, threads>& storage, T& total) {
    return block_inclusive_sum<threads>(value, storage, total) - value;
}

/// Combines the values of all threads with op, in every thread; op is associative and commutative.
template <std::uint32_t threads, class T, class Op>
__device__ T block_reduce(T value, WarpValues<T, threads>& storage, const Op& op) {
    value = warp_reduce(value, op);
    if (lane() == 0) storage.of[threadIdx.x / warp_threads] = value;
    __syncthreads();
    T all = storage.of[0];
#pragma unroll 8
    for (std::uint32_t w = 1; w < threads / warp_threads; ++w)
        all = op(all, storage.of[w]);
    __syncthreads();
    return all;
}

/// Storage of block_compact(): the number of items of each kind, for each warp and each item of its threads.
template <std::uint32_t threads, std::uint32_t items, std::uint32_t kinds>
struct Compaction {
    static_assert(threads % warp_threads == 0 && kinds <= threads / warp_threads);
    static constexpr std::uint32_t stretches = items * (threads / warp_threads);
    std::uint32_t before[kinds][stretches];
    std::uint32_t kept[kinds];
};

/// Sets place[k] to the place of this thread's k-th item among the items of its kind, keeping their order;
/// that item is number k * threads + threadIdx.x of the block. Items of kind `kinds` are left out and get no
/// place. Sets kept[kind] to the number of items of each kind.
template <std::uint32_t threads, std::uint32_t items, std::uint32_t kinds>
__device__ void block_compact(const std::uint32_t (&kind)[items], Compaction<threads, items, kinds>& storage,
                              std::uint32_t (&place)[items], std::uint32_t (&kept)[kinds]) {
    constexpr std::uint32_t warps = threads / warp_threads;
    constexpr std::uint32_t stretches = items * warps;
    const std::uint32_t warp = threadIdx.x / warp_threads;
#pragma unroll
    for (std::uint32_t k = 0; k < items; ++k) {
        place[k] = 0;
#pragma unroll
        for (std::uint32_t n = 0; n < kinds; ++n) {
            const unsigned with = __ballot_sync(all_lanes, kind[k] == n);
            if (kind[k] == n) place[k] = __popc(with & lanes_below());
            if (lane() == 0) storage.before[n][k * warps + warp] = __popc(with);
        }
    }
    __syncthreads();
    if (warp < kinds) {
        std::uint32_t* const before = storage.before[warp];
        std::uint32_t sum = 0;
#pragma unroll
        for (std::uint32_t base = 0; base < stretches; base += warp_threads) {
            const std::uint32_t i = base + lane();
            const std::uint32_t own = i < stretches ? before[i] : 0;
            const std::uint32_t inclusive = warp_inclusive_sum(own);
            if (i < stretches) before[i] = sum + inclusive - own;
            sum += __shfl_sync(all_lanes, inclusive, warp_threads - 1);
        }
        if (lane() == 0) storage.kept[warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t k = 0; k < items; ++k) {
        if (kind[k] < kinds) place[k] += storage.before[kind[k]][k * warps + warp];
    }
#pragma unroll
    for (std::uint32_t n = 0; n < kinds; ++n)
        kept[n] = storage.kept[n];
    __syncthreads();
}

/// counts[0..bins) = 0, in shared memory.
template <std::uint32_t threads>
__device__ void block_clear(std::uint32_t* counts, std::uint32_t bins) {
    for (std::uint32_t i = threadIdx.x; i < bins; i += threads)
        counts[i] = 0;
    __syncthreads();
}

/// to[bin] += counts[bin] for all bins. The counts are in shared memory and reusable on return.
template <std::uint32_t threads>
__device__ void block_add_counts(const std::uint32_t* counts, std::uint32_t bins, std::uint32_t* to) {
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < bins; i += threads) {
        if (counts[i] > 0) atomicAdd(&to[i], counts[i]);
    }
    __syncthreads();
}

}  // namespace petacq::gpu::cuda
