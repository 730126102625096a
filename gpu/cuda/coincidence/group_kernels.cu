#include "gpu/cuda/coincidence/group_kernels.hpp"

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/coincidence/windows.cuh"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t super_singles = single_tile * super_tiles;

__global__ void bounds_kernel(const __grid_constant__ SearchArguments a) {
    SearchTotals& t = *a.totals;
    const bool nothing = t.long_run != 0;
    const auto below = [&](std::uint64_t limit) {
        return warp_partition_point(0, a.count, [&](std::uint32_t i) { return a.singles[i].time < limit; });
    };
    std::uint32_t view = nothing ? 0 : a.count;
    if (!nothing && !a.everything && a.segment_end != UINT64_MAX) view = below(a.segment_end);
    std::uint32_t decided = view;
    if (!nothing && !a.ends_segment) decided = below(a.horizon);
    if (threadIdx.x != 0) return;
    t.decided = decided;
    t.view = view;
    t.first_anchor = a.ends_segment ? min(a.taken, decided) : a.taken;
    t.next = max(t.first_anchor, a.rules.greedy ? 0 : decided);
}

using Storage = WarpValues<std::uint32_t, search_threads>;

/// The index plus one of the last single in [from, to) that opens a group regardless of what precedes it; 0
/// if there is none. The whole block calls it.
__device__ std::uint32_t last_reset(const SearchArguments& a, std::uint32_t first, std::uint32_t from,
                                    std::uint32_t to, Storage& storage) {
    std::uint32_t last = 0;
    for (std::uint32_t i = from + threadIdx.x; i < to; i += search_threads) {
        if (i == first || a.singles[i].time - a.singles[i - 1].time > a.rules.window) last = i + 1;
    }
    return block_reduce<search_threads>(last, storage,
                                        [](std::uint32_t x, std::uint32_t y) { return max(x, y); });
}

/// Whether the scan can reach a single: windows end only between different times.
__device__ bool is_entry(const SearchArguments& a, std::uint32_t first, std::uint32_t at) {
    return at == first || a.singles[at].time != a.singles[at - 1].time;
}

__global__ void __launch_bounds__(search_threads)
    tile_exits_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint64_t times[single_tile];
    __shared__ std::uint32_t jumps[2][single_tile];
    __shared__ Storage storage;
    __shared__ std::uint32_t exit_at;
    __shared__ std::uint32_t reach_at;
    const std::uint32_t first = a.totals->first_anchor;
    const std::uint64_t start = first + std::uint64_t{blockIdx.x} * single_tile;
    if (start >= scan_end(a)) return;
    const Tile tile = tile_at(static_cast<std::uint32_t>(start), a.totals->view);
    if (threadIdx.x == 0) exit_at = none;

    // Usually there is a gap near the end of the tile, and the scan leaves the tile a few groups later.
    const std::uint32_t probe = tile.size() > search_threads ? tile.end - search_threads : tile.begin;
    const std::uint32_t near_reset = last_reset(a, first, probe, tile.end, storage);
    if (threadIdx.x == 0 && near_reset > 0) {
        std::uint32_t at = near_reset - 1;
        for (int steps = 0; steps < 32 && at < tile.end; ++steps)
            at = window_end(GlobalTimes{a.singles}, at, tile.view, a.singles[at].time, a.rules.window);
        if (at >= tile.end) exit_at = at;
    }
    __syncthreads();
    if (exit_at != none) {
        if (threadIdx.x == 0) a.tile_exit[blockIdx.x] = exit_at;
        return;
    }

    // Finds where the scan from each single leaves the tile, with jumps that double.
    load_times(tile, a.singles, times);
    const std::uint32_t reset = last_reset(a, first, tile.begin, tile.end, storage);
    window_ends(tile, a.singles, times, a.rules.window, jumps[0]);
    __syncthreads();
    std::uint32_t now = 0;
    bool more = true;
    while (more) {
        bool jumped = false;
        for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
            const std::uint32_t to = jumps[now][i];
            jumped |= to < tile.end;
            jumps[1 - now][i] = to < tile.end ? jumps[now][to - tile.begin] : to;
        }
        more = __syncthreads_or(jumped ? 1 : 0) != 0;
        now = 1 - now;
    }
    const std::uint32_t* jump = jumps[now];
    if (reset > 0) {
        if (threadIdx.x == 0) a.tile_exit[blockIdx.x] = jump[reset - 1 - tile.begin];
        return;
    }
    // Without a gap, the first single is not the first anchor: the window of an earlier single reaches it.
    if (threadIdx.x < 32) {
        const std::uint64_t before = a.singles[tile.begin - 1].time;
        const std::uint32_t reach = warp_partition_point(tile.begin, tile.view, [&](std::uint32_t i) {
            return a.singles[i].time - before <= a.rules.window;
        });
        if (threadIdx.x == 0) reach_at = reach;
    }
    __syncthreads();
    const std::uint32_t reach = reach_at;
    const std::uint32_t entries = min(reach - tile.begin + 1, tile.size());
    bool same = reach < tile.end;
    if (same) {
        const std::uint32_t last = jump[reach - tile.begin];
        for (std::uint32_t i = threadIdx.x; i < entries; i += search_threads)
            same &= jump[i] == last || (i > 0 ? times[i] == times[i - 1] : !is_entry(a, first, tile.begin));
    }
    if (__syncthreads_and(same ? 1 : 0) != 0) {
        if (threadIdx.x == 0) a.tile_exit[blockIdx.x] = jump[reach - tile.begin];
        return;
    }
    for (std::uint32_t i = threadIdx.x; i < entries; i += search_threads)
        a.exits[tile.begin + i] = jump[i];
    if (threadIdx.x == 0) {
        a.tile_exit[blockIdx.x] = none;
        a.tile_reach[blockIdx.x] = reach;
    }
}

/// The tiles of a super tile and their singles.
struct SuperTile {
    std::uint32_t first_tile;
    std::uint32_t tiles;
    std::uint32_t begin;
    std::uint32_t end;
};
__device__ bool super_tile_at(const SearchArguments& a, std::uint32_t index, SuperTile& super) {
    const std::uint32_t first = a.totals->first_anchor;
    const std::uint32_t end = scan_end(a);
    if (end <= first) return false;
    const std::uint32_t tiles = (end - first + single_tile - 1) / single_tile;
    super.first_tile = index * super_tiles;
    if (super.first_tile >= tiles) return false;
    super.tiles = min(super_tiles, tiles - super.first_tile);
    super.begin = first + super.first_tile * single_tile;
    super.end = a.totals->view - super.begin > super.tiles * single_tile
                    ? super.begin + super.tiles * single_tile
                    : a.totals->view;
    return true;
}

/// Follows the scan from `at` to the end of the super tile.
__device__ std::uint32_t follow(const SearchArguments& a, const SuperTile& super,
                                const std::uint32_t* tile_exit, std::uint32_t at) {
    while (at < super.end) {
        const std::uint32_t exit = tile_exit[(at - super.begin) / single_tile];
        at = exit != none ? exit : a.exits[at];
    }
    return at;
}

__global__ void __launch_bounds__(search_threads) compose_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint32_t tile_exit[super_tiles];
    __shared__ std::uint32_t last_known;
    SuperTile super{};
    if (!super_tile_at(a, blockIdx.x, super)) return;
    if (threadIdx.x == 0) last_known = 0;
    __syncthreads();
    if (threadIdx.x < super.tiles) {
        const std::uint32_t exit = a.tile_exit[super.first_tile + threadIdx.x];
        tile_exit[threadIdx.x] = exit;
        if (exit != none) atomicMax(&last_known, threadIdx.x + 1);
    }
    __syncthreads();
    if (last_known > 0) {
        if (threadIdx.x == 0)
            a.super_exit[blockIdx.x] = follow(a, super, tile_exit, tile_exit[last_known - 1]);
        return;
    }
    const std::uint32_t reach = a.tile_reach[super.first_tile];
    const std::uint32_t first = a.totals->first_anchor;
    for (std::uint32_t at = super.begin + threadIdx.x; at <= reach && at < super.end; at += search_threads) {
        if (is_entry(a, first, at)) a.super_exits[at] = follow(a, super, tile_exit, at);
    }
    if (threadIdx.x == 0) a.super_exit[blockIdx.x] = none;
}

/// Finds where the scan enters each tile of a super tile.
__global__ void expand_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint32_t tile_exit[super_tiles];
    SuperTile super{};
    if (!super_tile_at(a, blockIdx.x, super)) return;
    if (threadIdx.x < super.tiles) tile_exit[threadIdx.x] = a.tile_exit[super.first_tile + threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0) return;
    const std::uint32_t first = a.totals->first_anchor;
    std::uint32_t known = blockIdx.x;
    while (known > 0 && a.super_exit[known - 1] == none)
        --known;
    std::uint32_t at = known == 0 ? first : a.super_exit[known - 1];
    for (; known < blockIdx.x; ++known) {
        // All earlier super tiles are complete.
        const std::uint32_t end = first + (known + 1) * super_singles;
        if (at < end) at = a.super_exits[at];
    }
    for (std::uint32_t tile = 0; tile < super.tiles; ++tile) {
        a.entries[super.first_tile + tile] = at;
        const std::uint32_t end = super.begin + (tile + 1) * single_tile;
        if (at < end && at < super.end) at = tile_exit[tile] != none ? tile_exit[tile] : a.exits[at];
    }
}

}  // namespace

void launch_bounds(const SearchArguments& a, cudaStream_t stream) {
    bounds_kernel<<<1, 32, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "looking for the horizon");
}

void launch_groups(const SearchArguments& a, cudaStream_t stream) {
    const std::uint32_t tiles = tiles_for(a.count - a.taken);
    if (!a.rules.greedy || tiles == 0) return;
    const std::uint32_t supers = (tiles + super_tiles - 1) / super_tiles;
    tile_exits_kernel<<<tiles, search_threads, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "looking for the exits of tiles");
    compose_kernel<<<supers, search_threads, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "composing exits");
    expand_kernel<<<supers, super_tiles, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "expanding exits");
}

}  // namespace petacq::gpu::cuda
