#include "gpu/cuda/coincidence/count_kernels.hpp"

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/coincidence/delayed_kernels.hpp"
#include "gpu/cuda/coincidence/sums.cuh"
#include "gpu/cuda/coincidence/tally.cuh"
#include "gpu/cuda/coincidence/windows.cuh"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t warps = search_threads / 32;
constexpr std::uint32_t scan_threads = 1024;

/// Marks the groups that start in the tile. Threads go from the entry and from gaps to the next gap.
__device__ void mark_groups(const Tile& tile, const Single* singles, const std::uint64_t* times,
                            const std::uint32_t* ends, std::uint32_t entry, std::uint32_t width,
                            std::uint32_t* marks) {
    const auto opens = [&](std::uint32_t i) {
        if (i > 0) return times[i] - times[i - 1] > width;
        return tile.begin > 0 && times[0] - singles[tile.begin - 1].time > width;
    };
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        if (tile.begin + i < entry || (tile.begin + i > entry && !opens(i))) continue;
        std::uint32_t at = i;
        do {
            atomicOr(&marks[at / 32], 1U << (at % 32));
            at = ends[at] - tile.begin;
        } while (at < tile.size() && !opens(at));
    }
}

/// Adds the energies of the windows that open in the tile. A loop of its own, so that searches that need none
/// do not ask for each window.
__device__ void sample_windows(const SearchArguments& a, const Tile& tile, std::uint32_t decided,
                               const std::uint32_t* ends, const std::uint32_t* marks) {
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        const std::uint32_t at = tile.begin + i;
        const bool opens = at < decided && (marks[i / 32] >> (i % 32) & 1) != 0;
        if (opens && ends[i] - at <= 2) sample_energies(a, at, ends[i] - at);
    }
}

template <bool greedy, class Rule>
// Keeps five blocks on a multiprocessor; the registers for large groups would cost one of them.
__global__ void __launch_bounds__(search_threads, 5)
    count_prompts_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint64_t times[single_tile];
    __shared__ std::uint32_t ends[single_tile];
    __shared__ std::uint32_t marks[mark_words];
    __shared__ std::uint32_t counts[count_fields];
    __shared__ std::uint16_t
        large[single_tile / thread_group];  // groups handled by warps; they do not overlap
    __shared__ std::uint32_t large_count;
    __shared__ std::uint32_t beyond;  // the end of the group that extends beyond the decided singles
    const std::uint32_t decided = a.totals->decided;
    const std::uint64_t start = a.totals->first_anchor + std::uint64_t{blockIdx.x} * single_tile;
    if (start >= scan_end(a)) return;
    const Tile tile = tile_at(static_cast<std::uint32_t>(start), a.totals->view);
    load_times(tile, a.singles, times);
    if (threadIdx.x < mark_words) marks[threadIdx.x] = greedy ? 0 : all_lanes;
    if (threadIdx.x < count_fields) counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        large_count = 0;
        beyond = 0;
    }
    __syncthreads();
    if (greedy) {
        window_ends(tile, a.singles, times, a.rules.window, ends);
        __syncthreads();
        mark_groups(tile, a.singles, times, ends, a.entries[blockIdx.x], a.rules.window, marks);
    } else {
        const TileTimes time{times, a.singles, tile.begin, tile.end};
        for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
            // The exact size of an oversize window does not matter.
            const std::uint32_t at = tile.begin + i;
            const std::uint32_t limit =
                tile.view - at > a.rules.max_multiplicity ? at + a.rules.max_multiplicity + 1 : tile.view;
            ends[i] = window_end(time, at, limit, times[i], a.rules.window);
        }
    }
    __syncthreads();
    if (greedy && a.rules.shifted) {
        if (threadIdx.x < mark_words)
            a.marks[std::uint64_t{blockIdx.x} * mark_words + threadIdx.x] = marks[threadIdx.x];
        if (start >= decided) return;
    }

    // The times are no longer needed. Their memory now holds the number of records of each single, and the
    // pair where there is at most one.
    auto* const pairs = reinterpret_cast<std::uint32_t*>(times);
    std::uint32_t* const chosen = pairs + single_tile;
    const auto note = [&](std::uint32_t i, const Taken& taken) {
        pairs[i] = taken.pairs;
        chosen[i] = taken.i << 16 | taken.j;
    };
    Tally tally;
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        const std::uint32_t at = tile.begin + i;
        pairs[i] = 0;
        if (at >= decided) continue;
        const bool opens = (marks[i / 32] >> (i % 32) & 1) != 0;
        add_single(a, at, opens && ends[i] == at + 1);
        if (!opens) continue;
        ++tally.groups;
        if (greedy && ends[i] >= decided) {  // only one group
            a.totals->next = ends[i];
            beyond = ends[i];
        }
        if (for_a_warp<greedy>(ends[i] - at, a.rules)) {
            large[atomicAdd(&large_count, 1U)] = static_cast<std::uint16_t>(i);
        } else {
            note(i, tally_window<greedy, Rule>(a, at, ends[i] - at, tally));
        }
    }
    if (greedy) {
        __syncthreads();
        for (std::uint32_t n = threadIdx.x / 32; n < large_count; n += warps) {
            const std::uint32_t i = large[n];
            const std::uint32_t at = tile.begin + i;
            const std::uint32_t size = ends[i] - at;
            const GroupPairs group{size, false, pair_rule<Rule>(a.rules), Members{a.singles, at, at + 1}};
            const Taken taken = warp_take_from(group, a.rules.policy);
            if (threadIdx.x % 32 != 0) continue;
            tally_multiple<greedy>(taken, size, tally);
            note(i, taken);
        }
        for (std::uint32_t at = decided + threadIdx.x; at < beyond; at += search_threads)
            add_single(a, at, false);
    }
    if (samples_energies(a.rules.policy)) sample_windows(a, tile, decided, ends, marks);
    add_tally(tally, counts);
    __syncthreads();
    if (threadIdx.x < count_fields && counts[threadIdx.x] > 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&a.totals->counts[threadIdx.x]),
                  static_cast<unsigned long long>(counts[threadIdx.x]));
    }
    const bool one_pair = takes_one_pair(a.rules.policy);
    list_emitters(pairs, tile.size(), a.prompts, [&](std::uint32_t i, std::uint32_t records) {
        const std::uint32_t at = tile.begin + i;
        if (one_pair) return Emitter{at + (chosen[i] >> 16), at + (chosen[i] & 0xFFFF), 2, 1};
        return Emitter{at, at + 1, ends[i] - at, records};
    });
}

/// Block 0 handles prompts, block 1 delayeds. Replaces each tile's number of records by the sum before it.
__global__ void __launch_bounds__(scan_threads) scan_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ WarpValues<std::uint64_t, scan_threads> storage;
    SearchTotals& t = *a.totals;
    const bool of_prompts = blockIdx.x == 0;
    const std::uint32_t first = first_opener(a, of_prompts ? Kind::prompt : Kind::delayed);
    const std::uint32_t singles = t.decided > first ? t.decided - first : 0;
    const std::uint32_t tiles = (singles + single_tile - 1) / single_tile;
    std::uint64_t* const records = of_prompts ? a.prompts.records : a.delayeds.records;
    std::uint64_t before = 0;
    for (std::uint32_t base = 0; base < tiles; base += scan_threads) {
        const std::uint32_t tile = base + threadIdx.x;
        const std::uint64_t own = tile < tiles ? records[tile] : 0;
        std::uint64_t sum = 0;
        const std::uint64_t in_front = block_exclusive_sum<scan_threads>(own, storage, sum);
        if (tile < tiles) records[tile] = before + in_front;
        before += sum;
    }
    if (threadIdx.x == 0) (of_prompts ? t.prompts : t.delayeds) = before;
}

/// Without a search no single is known to be unpaired, so all are added to `grouped`.
__global__ void add_singles_kernel(const __grid_constant__ SearchArguments a) {
    const std::uint32_t stride = gridDim.x * blockDim.x;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.totals->decided; i += stride)
        add_single(a, i, false);
}

}  // namespace

void launch_counts(const SearchArguments& a, cudaStream_t stream) {
    const std::uint32_t tiles = tiles_for(a.count - a.taken);
    a.rules.pair.use([&]<class Rule>(const Rule&) {
        if (tiles == 0) return;
        if (a.rules.greedy) {
            count_prompts_kernel<true, Rule><<<tiles, search_threads, 0, stream>>>(a);
        } else {
            count_prompts_kernel<false, Rule><<<tiles, search_threads, 0, stream>>>(a);
        }
    });
    check(cudaGetLastError(), "kernel launch", "counting prompts");
    if (a.rules.delayeds) launch_delayed_counts(a, stream);
    scan_kernel<<<a.rules.delayeds ? 2 : 1, scan_threads, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "adding up records");
}

void launch_add_singles(const SearchArguments& a, cudaStream_t stream) {
    const std::uint32_t tiles = tiles_for(a.count);
    if (tiles == 0) return;
    add_singles_kernel<<<tiles, search_threads, 0, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "counting singles");
}

}  // namespace petacq::gpu::cuda
