// Places each converted single: among the ready ones, among those pending above the watermark, or, if it is a
// gamma, among the ready gammas. `with_gammas` is false for scanners without a gamma window, which pay
// nothing for it.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/look_back.cuh"
#include "gpu/cuda/convert/convert_kernels.hpp"

namespace petacq::gpu::cuda {

enum Destination : std::uint32_t { to_ready, to_pending, to_gammas, nowhere };
template <bool with_gammas>
inline constexpr std::uint32_t destinations = with_gammas ? 3 : 2;

struct Placed {
    std::uint64_t time;
    std::uint64_t value;
    Destination destination;
};

__device__ inline std::uint64_t value_of(std::uint32_t crystal, float energy) {
    return std::uint64_t{crystal} << 32 | __float_as_uint(energy);
}

__device__ inline float energy_of(std::uint64_t value) {
    return __uint_as_float(static_cast<std::uint32_t>(value));
}

__device__ inline bool is_gamma(const ConversionTables& t, float energy) {
    return t.gamma_lower <= energy && energy <= t.gamma_upper;
}

template <bool with_gammas>
__device__ Destination destination_of(const ConvertArguments& a, std::uint64_t time, float energy) {
    if (!a.all_ready && time >= a.watermark) return to_pending;
    if constexpr (with_gammas) {
        if (is_gamma(a.tables, energy)) return to_gammas;
    }
    return to_ready;
}

/// The tile of a block in one pass. Tiles are numbered in the order in which blocks take them, so a block
/// only ever waits for tiles that are already in progress.
struct PlacedTile {
    LookBack look_back;  ///< a word for each destination and tile: the number of singles that go there
    std::uint32_t number;
    std::uint32_t count;  ///< of all tiles
};

/// The least number of cells in a tile.
inline constexpr std::uint32_t min_cells = 256;

/// The two passes of a slice: over the singles that were pending, and over the cells.
__device__ inline PlacedTile split_tile(const ConvertArguments& a, std::uint32_t number,
                                        std::uint32_t count) {
    return {{a.words, 2 * a.round}, number, count};
}
__device__ inline PlacedTile cell_tile_at(const ConvertArguments& a, std::uint32_t number,
                                          std::uint32_t count) {
    return {{a.words, 2 * a.round + 1}, number, count};
}

template <std::uint32_t threads, std::uint32_t N, bool with_gammas>
struct PlacementStorage {
    Compaction<threads, N, destinations<with_gammas>> compaction;
    std::uint32_t base[destinations<with_gammas>];
};

/// Writes the singles of the block behind those of the earlier tiles, in input order: item k of a thread is
/// number k * threads + threadIdx.x of the tile. The totals hold the position where the first tile starts
/// and, after the last tile, where the next pass starts. Contains barriers.
template <std::uint32_t threads, std::uint32_t N, bool with_gammas>
__device__ void write_placed(const ConvertArguments& a, const PlacedTile& tile, const Placed (&placed)[N],
                             PlacementStorage<threads, N, with_gammas>& storage) {
    constexpr std::uint32_t kinds = destinations<with_gammas>;
    std::uint32_t kind[N];
    std::uint32_t place[N];
    std::uint32_t kept[kinds];
#pragma unroll
    for (std::uint32_t k = 0; k < N; ++k)
        kind[k] = placed[k].destination;
    block_compact(kind, storage.compaction, place, kept);
    const std::uint32_t warp = threadIdx.x / 32;
    if (warp < kinds) {
        std::uint32_t own = warp == to_ready ? kept[to_ready] : kept[to_pending];
        std::uint32_t* total = warp == to_ready ? &a.totals->ready : &a.totals->pending;
        if constexpr (with_gammas) {
            if (warp == to_gammas) {
                own = kept[to_gammas];
                total = &a.totals->gammas;
            }
        }
        const std::uint64_t word = std::uint64_t{tile.number} * kinds + warp;
        std::uint32_t before = 0;
        if (tile.number == 0) {
            before = *total;
        } else {
            if (lane() == 0) tile.look_back.publish_count(word, own);
            before = tile.look_back.warp_sum_before(word, kinds, tile.number);
        }
        if (lane() == 0) {
            tile.look_back.publish_sum(word, before + own);
            storage.base[warp] = before;
            if (tile.number + 1 == tile.count) *total = before + own;
        }
    }
    __syncthreads();
#pragma unroll
    for (std::uint32_t k = 0; k < N; ++k) {
        if (placed[k].destination == nowhere) continue;
        const std::uint32_t at = storage.base[placed[k].destination] + place[k];
        if constexpr (with_gammas) {
            if (placed[k].destination == to_gammas) {
                const std::uint64_t from_the_end = a.room - 1 - at;
                a.ready.time[from_the_end] = placed[k].time - a.base;
                a.ready.value[from_the_end] = placed[k].value;
                continue;
            }
        }
        const bool ready = placed[k].destination == to_ready;
        const SingleArrays& to = ready ? a.ready : a.pending;
        to.time[at] = ready ? placed[k].time - a.base : placed[k].time;
        to.value[at] = placed[k].value;
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
    if (p.destination == to_ready || p.destination == to_gammas) key = max(key, p.time - a.base);
    if (p.destination == to_pending) pending_time = max(pending_time, p.time);
}

}  // namespace petacq::gpu::cuda
