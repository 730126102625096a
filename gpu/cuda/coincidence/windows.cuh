// Where windows end among ordered singles, for one thread, one warp or one tile, and the list of those that
// yield records.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

inline constexpr std::uint32_t none = UINT32_MAX;
inline constexpr std::uint32_t search_threads = 256;
inline constexpr std::uint32_t per_search_thread = single_tile / search_threads;

/// The first index in (from, limit) whose time is more than `width` past `start`, or limit. The search
/// doubles its steps, so near ends are found quickly. `from` itself is not examined.
template <class Time>
__device__ std::uint32_t window_end(const Time& time, std::uint32_t from, std::uint32_t limit,
                                    std::uint64_t start, std::uint64_t width) {
    std::uint32_t inside = from;
    std::uint32_t outside = from + 1;
    std::uint32_t step = 1;
    while (outside < limit && time(outside) - start <= width) {
        inside = outside;
        outside = limit - outside > step ? outside + step : limit;
        step *= 2;
    }
    while (outside - inside > 1) {
        const std::uint32_t middle = inside + (outside - inside) / 2;
        if (time(middle) - start <= width) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    return outside;
}

struct GlobalTimes {
    const Single* singles;
    __device__ std::uint64_t operator()(std::uint32_t i) const { return singles[i].time; }
};

/// The times of a tile in shared memory, and those after it in global memory.
struct TileTimes {
    const std::uint64_t* shared;
    const Single* singles;
    std::uint32_t begin;
    std::uint32_t end;
    __device__ std::uint64_t operator()(std::uint32_t i) const {
        return i - begin < end - begin ? shared[i - begin] : singles[i].time;
    }
};

/// The end of the singles whose groups are looked for. A later group may block a shifted one.
__device__ inline std::uint32_t scan_end(const SearchArguments& a) {
    const SearchTotals& t = *a.totals;
    return a.rules.greedy && a.rules.shifted && t.decided > t.first_anchor ? t.view : t.decided;
}
/// The first single that may open a window for records of this kind.
__device__ inline std::uint32_t first_opener(const SearchArguments& a, Kind kind) {
    return kind == Kind::prompt || a.rules.shifted ? a.totals->first_anchor : 0;
}

/// The tile [begin, end) of the singles [0, view).
struct Tile {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t view;
    __device__ std::uint32_t size() const { return end - begin; }
};
__device__ inline Tile tile_at(std::uint32_t begin, std::uint32_t view) {
    return {begin, view - begin > single_tile ? begin + single_tile : view, view};
}

__device__ inline void load_times(const Tile& tile, const Single* singles, std::uint64_t* times) {
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads)
        times[i] = singles[tile.begin + i].time;
}

/// Sets ends[i] to the absolute index where the window of the tile's i-th single ends. On return all threads
/// see the loaded times, but not yet each other's ends. Contains barriers, so the whole block must call it.
__device__ inline void window_ends(const Tile& tile, const Single* singles, const std::uint64_t* times,
                                   std::uint32_t width, std::uint32_t* ends) {
    __shared__ std::uint32_t bracket[2];
    const TileTimes time{times, singles, tile.begin, tile.end};
    // All ends lie between those of the first and the last single, which bounds the search when windows reach
    // far beyond the tile.
    constexpr std::uint32_t nearby = 32;
    const bool far =
        tile.view - tile.end > nearby && singles[tile.end + nearby].time - times[tile.size() - 1] <= width;
    if (far) {
        if (threadIdx.x < 64) {
            const std::uint64_t start = threadIdx.x < 32 ? times[0] : times[tile.size() - 1];
            const std::uint32_t end = warp_partition_point(
                tile.end, tile.view, [&](std::uint32_t i) { return singles[i].time - start <= width; });
            if (threadIdx.x % 32 == 0) bracket[threadIdx.x / 32] = end;
        }
        __syncthreads();
    }
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        const std::uint64_t start = times[i];
        if (far && singles[tile.end].time - start <= width) {
            ends[i] = partition_point(bracket[0], bracket[1],
                                      [&](std::uint32_t k) { return singles[k].time - start <= width; });
        } else {
            ends[i] = window_end(time, tile.begin + i, tile.view, start, width);
        }
    }
}

/// Lists the emitters of a tile in order. pairs[i] is the number of records of the tile's i-th single.
/// Contains barriers.
template <class Make>
__device__ void list_emitters(const std::uint32_t* pairs, std::uint32_t size, const EmitterLists& lists,
                              const Make& make) {
    __shared__ Compaction<search_threads, per_search_thread, 1> compaction;
    __shared__ WarpValues<std::uint64_t, search_threads> sums;
    std::uint32_t own[per_search_thread];
    std::uint32_t kind[per_search_thread];  // 0 marks an emitter
    std::uint64_t records = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < per_search_thread; ++k) {
        const std::uint32_t i = k * search_threads + threadIdx.x;
        own[k] = i < size ? pairs[i] : 0;
        kind[k] = own[k] > 0 ? 0 : 1;
        records += own[k];
    }
    std::uint32_t place[per_search_thread];
    std::uint32_t emitters[1];
    block_compact<search_threads>(kind, compaction, place, emitters);
    records =
        block_reduce<search_threads>(records, sums, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (threadIdx.x == 0) {
        lists.records[blockIdx.x] = records;
        lists.emitter_counts[blockIdx.x] = emitters[0];
    }
    Emitter* const out = lists.emitters + std::uint64_t{blockIdx.x} * single_tile;
#pragma unroll
    for (std::uint32_t k = 0; k < per_search_thread; ++k) {
        if (own[k] > 0) out[place[k]] = make(k * search_threads + threadIdx.x, own[k]);
    }
}

}  // namespace petacq::gpu::cuda
