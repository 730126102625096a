// Stable sorting of a tile in shared memory, and merging of two runs tile by tile. Only keys and their
// original places move; values are fetched once, at the end.
#pragma once

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/sort/sort.hpp"

namespace petacq::gpu::sort {

/// Orders keys by their low bits.
struct KeyOrder {
    int shift;  ///< 64 minus the number of sorted bits
    __device__ std::uint64_t low(std::uint64_t key) const { return key << shift; }
    __device__ bool before(std::uint64_t a, std::uint64_t b) const { return low(a) < low(b); }
};

/// The number of the first `outputs` items of two merged runs that come from the first run. Equal items of
/// the first run come before those of the second. `search` is a partition_point.
template <class First, class Second, class Search>
__device__ std::uint32_t merge_split(std::uint32_t outputs, std::uint32_t first_size,
                                     std::uint32_t second_size, const KeyOrder& order, const First& first,
                                     const Second& second, const Search& search) {
    return search(outputs > second_size ? outputs - second_size : 0, min(outputs, first_size),
                  [&](std::uint32_t i) { return !order.before(second(outputs - 1 - i), first(i)); });
}

template <std::uint32_t threads_, std::uint32_t items_>
struct BlockMerge {
    static constexpr std::uint32_t threads = threads_;
    static constexpr std::uint32_t items = items_;
    static constexpr std::uint32_t tile = threads * items;
    using Place = std::uint16_t;
    static_assert(tile <= 0x10000);

    /// One extra word after every 16, so that threads reading `items` words apart cause few bank conflicts.
    static __device__ constexpr std::uint32_t padded(std::uint32_t i) { return i + i / 16; }

    struct Storage {
        std::uint64_t word[tile + tile / 16];
        Place place[tile];
    };

    /// The items of a thread, in order.
    struct Items {
        std::uint64_t key[items];
        Place place[items];
    };

    static __device__ void put(Storage& s, const Items& own) {
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            s.word[padded(threadIdx.x * items + k)] = own.key[k];
            s.place[threadIdx.x * items + k] = own.place[k];
        }
    }

    /// Computes the outputs [from, from + items) of the merged runs [begin, middle) and [middle, end).
    /// Outputs beyond the last are left unchanged.
    static __device__ void merge(const Storage& s, std::uint32_t begin, std::uint32_t middle,
                                 std::uint32_t end, std::uint32_t from, const KeyOrder& order, Items& own) {
        if (from >= end - begin) return;
        const auto key_at = [&](std::uint32_t i) { return s.word[padded(i)]; };
        std::uint32_t a = merge_split(
            from, middle - begin, end - middle, order, [&](std::uint32_t i) { return key_at(begin + i); },
            [&](std::uint32_t i) { return key_at(middle + i); },
            [](std::uint32_t low, std::uint32_t high, const auto& holds) {
                return cuda::partition_point(low, high, holds);
            });
        std::uint32_t b = middle + from - a;
        a += begin;
        std::uint64_t a_key = a < middle ? key_at(a) : 0;
        std::uint64_t b_key = b < end ? key_at(b) : 0;
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const bool second = b < end && (a == middle || order.before(b_key, a_key));
            if (second) {
                own.key[k] = b_key;
                own.place[k] = s.place[b++];
                if (b < end) b_key = key_at(b);
            } else if (a < middle) {
                own.key[k] = a_key;
                own.place[k] = s.place[a++];
                if (a < middle) a_key = key_at(a);
            }
        }
    }

    /// Writes the `count` items that the threads hold to out[at...]: the keys, and the values from `in` at
    /// from(place). Storage must be free on entry (all threads have passed a barrier); it is in use on
    /// return.
    template <class From>
    static __device__ void write(Storage& s, const Items& own, std::uint32_t count, Pairs in, Pairs out,
                                 std::uint32_t at, const From& from) {
        put(s, own);
        std::uint64_t value[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            value[k] = i < count ? in.value[from(i)] : 0;
        }
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            if (i < count) out.key[at + i] = s.word[padded(i)];
        }
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k)
            s.word[padded(k * threads + threadIdx.x)] = value[k];
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            if (i < count) out.value[at + i] = s.word[padded(s.place[i])];
        }
    }

    /// Reads the keys of `count` items, at from(0...), to s.word, where all threads see them.
    template <class From>
    static __device__ void read(Storage& s, std::uint32_t count, const std::uint64_t* key, const From& from) {
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            // Stand-ins for missing items stay last, because the sort is stable.
            s.word[padded(i)] = i < count ? key[from(i)] : ~std::uint64_t{0};
        }
        __syncthreads();
    }

    /// Reads the items of the thread from s.word.
    static __device__ void take(const Storage& s, Items& own) {
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = threadIdx.x * items + k;
            own.key[k] = s.word[padded(i)];
            own.place[k] = static_cast<Place>(i);
        }
    }

    /// Sorts the first `count` keys in s.word; each thread gets its part in order. Storage is free on return.
    static __device__ void sort(Storage& s, std::uint32_t count, const KeyOrder& order, Items& own) {
        take(s, own);
#pragma unroll
        for (std::uint32_t phase = 0; phase < items; ++phase) {
#pragma unroll
            for (std::uint32_t k = phase % 2; k + 1 < items; k += 2) {
                if (order.before(own.key[k + 1], own.key[k])) {
                    const std::uint64_t key = own.key[k];
                    own.key[k] = own.key[k + 1];
                    own.key[k + 1] = key;
                    const Place place = own.place[k];
                    own.place[k] = own.place[k + 1];
                    own.place[k + 1] = place;
                }
            }
        }
        __syncthreads();
        for (std::uint32_t run = items; run < count; run *= 2) {
            put(s, own);
            __syncthreads();
            const std::uint32_t first = threadIdx.x * items;
            const std::uint32_t begin = first / (2 * run) * (2 * run);
            merge(s, begin, min(begin + run, tile), min(begin + 2 * run, tile), first - begin, order, own);
            __syncthreads();
        }
    }
};

using MergeTile = BlockMerge<512, 8>;

/// Sorts `count` items, at most a tile, from in[from...] to out[to...], which may be the same place. The
/// whole block calls it.
__device__ inline void sort_tile(MergeTile::Storage& s, Pairs in, std::uint32_t from, Pairs out,
                                 std::uint32_t to, std::uint32_t count, const KeyOrder& order) {
    const auto at = [=](std::uint32_t i) { return from + i; };
    MergeTile::Items own;
    MergeTile::read(s, count, in.key, at);
    MergeTile::sort(s, count, order, own);
    MergeTile::write(s, own, count, in, out, to, at);
}

/// Merges neighbouring runs of `run` items among the `count` items in `in` and writes the outputs of tile
/// number `tile`. Two runs form a multiple of a tile. The whole block calls it.
__device__ inline void merge_tile(MergeTile::Storage& s, std::uint32_t* splits, Pairs in, Pairs out,
                                  std::uint32_t count, std::uint64_t run, std::uint32_t tile,
                                  const KeyOrder& order) {
    const std::uint64_t to = std::uint64_t{tile} * MergeTile::tile;
    const std::uint64_t begin = to / (2 * run) * (2 * run);
    const auto bounded = [=](std::uint64_t i) { return static_cast<std::uint32_t>(i < count ? i : count); };
    const std::uint32_t first = bounded(begin);
    const std::uint32_t second = bounded(begin + run);
    const std::uint32_t first_size = second - first;
    const std::uint32_t second_size = bounded(begin + 2 * run) - second;
    const std::uint32_t from = bounded(to) - first;
    const std::uint32_t until = bounded(to + MergeTile::tile) - first;
    if (threadIdx.x < 2 * cuda::warp_threads) {
        const std::uint32_t split = merge_split(
            threadIdx.x < cuda::warp_threads ? from : until, first_size, second_size, order,
            [=](std::uint32_t i) { return in.key[first + i]; },
            [=](std::uint32_t i) { return in.key[second + i]; },
            [](std::uint32_t low, std::uint32_t high, const auto& holds) {
                return cuda::warp_partition_point(low, high, holds);
            });
        if (cuda::lane() == 0) splits[threadIdx.x / cuda::warp_threads] = split;
    }
    __syncthreads();
    const std::uint32_t a = first + splits[0];
    const std::uint32_t b = second + from - splits[0];
    const std::uint32_t a_size = splits[1] - splits[0];
    const std::uint32_t size = until - from;
    const auto at = [=](std::uint32_t i) { return i < a_size ? a + i : b + (i - a_size); };
    MergeTile::read(s, size, in.key, at);
    MergeTile::Items own;
    // The runs lie one after the other in storage, in their original order.
#pragma unroll
    for (std::uint32_t k = 0; k < MergeTile::items; ++k)
        s.place[k * MergeTile::threads + threadIdx.x] =
            static_cast<MergeTile::Place>(k * MergeTile::threads + threadIdx.x);
    __syncthreads();
    MergeTile::merge(s, 0, a_size, size, threadIdx.x * MergeTile::items, order, own);
    __syncthreads();
    MergeTile::write(s, own, size, in, out, static_cast<std::uint32_t>(to), at);
}

}  // namespace petacq::gpu::sort
