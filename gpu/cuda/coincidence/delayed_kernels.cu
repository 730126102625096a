#include "gpu/cuda/coincidence/delayed_kernels.hpp"

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/coincidence/multiples.cuh"
#include "gpu/cuda/coincidence/windows.cuh"
#include "gpu/rules/shifted_group.hpp"

namespace petacq::gpu::cuda {

namespace {

/// Adds the values of a whole warp to a counter in global memory.
__device__ void add_count(SearchTotals* totals, CountIndex index, std::uint32_t value) {
    const std::uint32_t sum = __reduce_add_sync(all_lanes, value);
    if (threadIdx.x % 32 == 0 && sum > 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&totals->counts[index]),
                  static_cast<unsigned long long>(sum));
    }
}

/// Every decided single opens the window [time + delay, time + delay + width] for partners.
template <class Rule>
__global__ void __launch_bounds__(search_threads)
    count_delayeds_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint32_t lows[single_tile];
    __shared__ std::uint32_t highs[single_tile];
    __shared__ std::uint32_t pairs[single_tile];
    __shared__ std::uint32_t bracket[2];
    const std::uint32_t decided = a.totals->decided;
    const std::uint64_t start = std::uint64_t{blockIdx.x} * single_tile;
    if (start >= decided) return;
    const Tile tile = tile_at(static_cast<std::uint32_t>(start), decided);
    const std::uint32_t view = a.totals->view;
    const std::uint64_t delay = a.rules.delay;
    const bool one_pair = takes_one_pair(a.rules.policy);
    std::uint32_t dropped = 0;
    std::uint32_t oversize = 0;
    if (threadIdx.x < 64) {
        const std::uint32_t opener = threadIdx.x < 32 ? tile.begin : tile.end - 1;
        const std::uint64_t time = a.singles[opener].time;
        const std::uint32_t low = warp_partition_point(
            opener + 1, view, [&](std::uint32_t i) { return a.singles[i].time - time < delay; });
        if (threadIdx.x % 32 == 0) bracket[threadIdx.x / 32] = low;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        const std::uint32_t opener = tile.begin + i;
        const std::uint64_t time = a.singles[opener].time;
        const std::uint32_t low =
            partition_point(max(bracket[0], opener + 1), bracket[1],
                            [&](std::uint32_t k) { return a.singles[k].time - time < delay; });
        const std::uint32_t limit =
            view - low > a.rules.max_multiplicity ? low + a.rules.max_multiplicity : view;
        std::uint32_t high = low;
        if (low < limit) {
            high = window_end(GlobalTimes{a.singles}, low - 1, limit, time, delay + a.rules.window);
        }
        const std::uint32_t partners = high - low;
        pairs[i] = 0;
        lows[i] = low;
        highs[i] = high;
        if (partners == 1) {
            pairs[i] =
                pair_rule<Rule>(a.rules).good(a.singles[opener].crystal, a.singles[low].crystal) ? 1 : 0;
        } else if (partners >= a.rules.max_multiplicity) {
            ++oversize;
        } else if (partners > 1) {
            const GroupPairs group{partners + 1, true, pair_rule<Rule>(a.rules),
                                   Members{a.singles, opener, low}};
            const Taken taken = take_from(group, a.rules.policy);
            pairs[i] = taken.pairs;
            dropped += taken.pairs == 0 ? 1 : 0;
            if (one_pair) {  // only the partner
                lows[i] = low + taken.j - 1;
                highs[i] = low + taken.j;
            }
        }
    }
    add_count(a.totals, count_delayed_dropped, dropped);
    add_count(a.totals, count_delayed_oversize, oversize);
    __syncthreads();
    list_emitters(pairs, tile.size(), a.delayeds, [&](std::uint32_t i, std::uint32_t records) {
        return Emitter{tile.begin + i, lows[i], highs[i] - lows[i] + 1, records};
    });
}

/// Whether a single at or after the first anchor opens a group.
__device__ bool opens_group(const SearchArguments& a, std::uint32_t anchor, std::uint32_t at) {
    const std::uint32_t n = at - anchor;
    return (a.marks[n / 32] >> (n % 32) & 1) != 0;
}

/// The opener of the group that holds a single at or after the first anchor, which opens one.
__device__ std::uint32_t opener_of(const SearchArguments& a, std::uint32_t anchor, std::uint32_t at) {
    const std::uint32_t n = at - anchor;
    std::uint32_t word = n / 32;
    std::uint32_t marks = a.marks[word] & (all_lanes >> (31 - n % 32));
    while (marks == 0)
        marks = a.marks[--word];
    return anchor + word * 32 + 31 - static_cast<std::uint32_t>(__clz(static_cast<int>(marks)));
}

/// Every decided group is shifted by the delay and opens a window there, unless a group blocks it.
template <bool greedy, class Rule>
__global__ void __launch_bounds__(search_threads)
    count_shifted_kernel(const __grid_constant__ SearchArguments a) {
    __shared__ std::uint32_t firsts[single_tile];
    __shared__ std::uint32_t seconds[single_tile];
    __shared__ std::uint32_t sizes[single_tile];
    __shared__ std::uint32_t pairs[single_tile];
    __shared__ std::uint32_t bracket[2];
    const std::uint32_t decided = a.totals->decided;
    const std::uint32_t anchor = a.totals->first_anchor;
    const std::uint64_t start = anchor + std::uint64_t{blockIdx.x} * single_tile;
    if (start >= decided) return;
    const Tile tile = tile_at(static_cast<std::uint32_t>(start), decided);
    const std::uint32_t view = a.totals->view;
    const std::uint64_t delay = a.rules.delay;
    const std::uint64_t width = a.rules.window;
    const bool one_pair = takes_one_pair(a.rules.policy);
    const GlobalTimes times{a.singles};
    // The windows of all openers begin between those of the first and the last single.
    if (threadIdx.x < 64) {
        const std::uint32_t at = threadIdx.x < 32 ? tile.begin : tile.end - 1;
        const Single opener = a.singles[at];
        const std::uint32_t low = warp_partition_point(
            at + 1, view, [&](std::uint32_t k) { return before_shifted(a.singles[k], opener, delay); });
        if (threadIdx.x % 32 == 0) bracket[threadIdx.x / 32] = low;
    }
    __syncthreads();
    std::uint32_t blocked = 0;
    std::uint32_t dropped = 0;
    std::uint32_t oversize = 0;
    for (std::uint32_t i = threadIdx.x; i < tile.size(); i += search_threads) {
        pairs[i] = 0;
        const std::uint32_t at = tile.begin + i;
        if (greedy && !opens_group(a, anchor, at)) continue;
        const Single opener = a.singles[at];
        const std::uint32_t low = partition_point(max(bracket[0], at + 1), bracket[1], [&](std::uint32_t k) {
            return before_shifted(a.singles[k], opener, delay);
        });
        const auto until_shifted = [&](std::uint32_t k) { return delay - (times(k) - opener.time); };
        if (greedy && until_shifted(low - 1) <= width &&
            until_shifted(opener_of(a, anchor, low - 1)) <= width) {
            ++blocked;
            continue;
        }
        // The exact size of an oversize window does not matter.
        const std::uint32_t limit =
            view - low > a.rules.max_multiplicity ? low + a.rules.max_multiplicity : view;
        if (low == limit) continue;
        const std::uint32_t high = window_end(times, low - 1, limit, opener.time, delay + width);
        if (low == high) continue;
        const std::uint32_t group_size = window_end(times, at, view, opener.time, width) - at;
        const std::uint32_t size = group_size + (high - low);
        firsts[i] = at;
        seconds[i] = low;
        sizes[i] = size;
        if (size > a.rules.max_multiplicity) {
            ++oversize;
        } else if (size == 2) {
            pairs[i] = pair_rule<Rule>(a.rules).good(opener.crystal, a.singles[low].crystal) ? 1 : 0;
        } else {
            const ShiftedGroup group{a.singles + at, group_size,          a.singles + low,         high - low,
                                     delay,          a.rules.opener_only, pair_rule<Rule>(a.rules)};
            std::uint32_t taken = 0;
            group.resolve(a.rules.policy, [&](const ShiftedMember& x, const ShiftedMember& y) {
                ++taken;
                if (one_pair) {
                    firsts[i] = at + (x.of_group ? x : y).index;
                    seconds[i] = low + (x.of_group ? y : x).index;
                    sizes[i] = 2;
                }
            });
            pairs[i] = taken;
            dropped += taken == 0 ? 1 : 0;
        }
    }
    add_count(a.totals, count_groups_blocked, blocked);
    add_count(a.totals, count_delayed_dropped, dropped);
    add_count(a.totals, count_delayed_oversize, oversize);
    __syncthreads();
    list_emitters(pairs, tile.size(), a.delayeds, [&](std::uint32_t i, std::uint32_t records) {
        return Emitter{firsts[i], seconds[i], sizes[i], records};
    });
}

}  // namespace

void launch_delayed_counts(const SearchArguments& a, cudaStream_t stream) {
    const std::uint32_t tiles = tiles_for(a.rules.shifted ? a.count - a.taken : a.count);
    if (tiles == 0) return;
    a.rules.pair.use([&]<class Rule>(const Rule&) {
        if (!a.rules.shifted) {
            count_delayeds_kernel<Rule><<<tiles, search_threads, 0, stream>>>(a);
        } else if (a.rules.greedy) {
            count_shifted_kernel<true, Rule><<<tiles, search_threads, 0, stream>>>(a);
        } else {
            count_shifted_kernel<false, Rule><<<tiles, search_threads, 0, stream>>>(a);
        }
    });
    check(cudaGetLastError(), "kernel launch", "counting delayeds");
}

}  // namespace petacq::gpu::cuda
