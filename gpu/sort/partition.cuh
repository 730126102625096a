// Stable distribution of items over bins in one pass over the data. A block takes a tile of items, counts its
// bins and ranks its items. It learns from the earlier tiles where each bin continues: each tile publishes
// its counts at once, and the sums over all tiles up to it as soon as they are known ("decoupled look-back").
//
// Tiles are numbered in the order in which blocks take them, so a block waits only for running tiles.
#pragma once

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/cuda/base/look_back.cuh"
#include "gpu/sort/sort.hpp"

namespace petacq::gpu::sort {

template <std::uint32_t threads_, std::uint32_t items_, int bin_bits_>
struct Partition {
    static constexpr std::uint32_t threads = threads_;
    static constexpr std::uint32_t items = items_;
    static constexpr int bin_bits = bin_bits_;
    static constexpr std::uint32_t bins = 1U << bin_bits;
    static constexpr std::uint32_t tile = threads * items;
    static constexpr std::uint32_t warps = threads / cuda::warp_threads;
    static constexpr std::uint32_t bins_per_thread = bins > threads ? bins / threads : 1;

    struct Storage {
        union {
            std::uint32_t warp_counts[warps][bins];
            std::uint64_t exchange[tile];
        };
        std::uint32_t bin_base[bins];
        std::uint16_t bin_of[tile];
        cuda::WarpValues<std::uint32_t, threads> scan;
    };

    /// The position of a tile.
    struct Tile {
        std::uint32_t begin;  ///< first item
        std::uint32_t count;  ///< items, at most a tile
        std::uint64_t word;   ///< of its first bin in the look-back
        bool first;           ///< no earlier tile; base says where the bins start
    };

    /// The bins of a thread, if it has any: [first_bin(), first_bin() + bins_per_thread).
    static __device__ std::uint32_t first_bin() { return threadIdx.x * bins_per_thread; }
    static __device__ bool has_bins() { return first_bin() < bins; }

    /// Moves the items of the tile from `in` to their places in `out`. bin_of(key) < bins. In the first tile,
    /// `base` holds the first place of each of the thread's bins. The whole block calls it; storage is free
    /// on return.
    template <class BinOf>
    static __device__ void run(Storage& s, const Tile& t, Pairs in, Pairs out, const BinOf& bin_of,
                               const cuda::LookBack& look_back,
                               const std::uint32_t (&base)[bins_per_thread]) {
        const std::uint32_t warp = threadIdx.x / cuda::warp_threads;
        const std::uint32_t mine =
            warp * items * cuda::warp_threads + cuda::lane();  // and every 32nd item after it
        for (std::uint32_t i = threadIdx.x; i < warps * bins; i += threads)
            (&s.warp_counts[0][0])[i] = 0;

        // The items of a warp are adjacent. Stand-ins for missing items are last in tile and bin.
        std::uint64_t key[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = mine + k * cuda::warp_threads;
            key[k] = i < t.count ? in.key[t.begin + i] : 0;
        }
        __syncthreads();
        std::uint32_t bin[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            bin[k] = mine + k * cuda::warp_threads < t.count ? bin_of(key[k]) : bins - 1;
            atomicAdd(&s.warp_counts[warp][bin[k]], 1U);
        }
        __syncthreads();

        std::uint32_t total[bins_per_thread] = {};  // in the tile
        std::uint32_t total_all = 0;
        if (has_bins()) {
#pragma unroll
            for (std::uint32_t j = 0; j < bins_per_thread; ++j) {
                for (std::uint32_t w = 0; w < warps; ++w)
                    total[j] += s.warp_counts[w][first_bin() + j];
                total_all += total[j];
                std::uint32_t real = total[j];
                if (first_bin() + j == bins - 1) real -= tile - t.count;
                if (!t.first) look_back.publish_count(t.word + first_bin() + j, real);
            }
        }
        std::uint32_t unused = 0;
        const std::uint32_t offset = cuda::block_exclusive_sum<threads>(total_all, s.scan, unused);
        if (has_bins()) {
            std::uint32_t at = offset;
#pragma unroll
            for (std::uint32_t j = 0; j < bins_per_thread; ++j) {
                for (std::uint32_t w = 0; w < warps; ++w) {
                    const std::uint32_t count = s.warp_counts[w][first_bin() + j];
                    s.warp_counts[w][first_bin() + j] = at;
                    at += count;
                }
            }
        }
        __syncthreads();

        std::uint32_t rank[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const unsigned peers = cuda::warp_peers<bin_bits>(bin[k]);
            const std::uint32_t at = s.warp_counts[warp][bin[k]];
            rank[k] = at + __popc(peers & cuda::lanes_below());
            __syncwarp();
            if ((peers & cuda::lanes_below()) == 0) s.warp_counts[warp][bin[k]] = at + __popc(peers);
            __syncwarp();
        }
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            s.exchange[rank[k]] = key[k];
            s.bin_of[rank[k]] = static_cast<std::uint16_t>(bin[k]);
        }
        std::uint64_t value[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = mine + k * cuda::warp_threads;
            value[k] = i < t.count ? in.value[t.begin + i] : 0;
        }
        if (has_bins()) {
            std::uint32_t at = offset;
#pragma unroll
            for (std::uint32_t j = 0; j < bins_per_thread; ++j) {
                const std::uint64_t word = t.word + first_bin() + j;
                const std::uint32_t before = t.first ? base[j] : look_back.sum_before(word, bins);
                std::uint32_t real = total[j];
                if (first_bin() + j == bins - 1) real -= tile - t.count;
                look_back.publish_sum(word, before + real);
                s.bin_base[first_bin() + j] = before - at;  // modulo 2^32
                at += total[j];
            }
        }
        __syncthreads();
        std::uint32_t place[items];
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            place[k] = s.bin_base[s.bin_of[i]] + i;
            if (i < t.count) out.key[place[k]] = s.exchange[i];
        }
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k)
            s.exchange[rank[k]] = value[k];
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < items; ++k) {
            const std::uint32_t i = k * threads + threadIdx.x;
            if (i < t.count) out.value[place[k]] = s.exchange[i];
        }
        __syncthreads();
    }
};

}  // namespace petacq::gpu::sort
