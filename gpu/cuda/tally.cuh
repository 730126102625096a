// What becomes of one window: how many records, and which counters.
#pragma once

#include <cstdint>

#include "gpu/cuda/windows.cuh"
#include "gpu/multiples.hpp"

namespace petacq::gpu::cuda {

/// A thread's own counters.
struct Tally {
    std::uint32_t prompts = 0;
    std::uint32_t unpaired = 0;
    std::uint32_t same_crystal = 0;
    std::uint32_t geometry = 0;
    std::uint32_t dropped = 0;
    std::uint32_t oversize = 0;
    std::uint32_t unused = 0;
    std::uint32_t reused = 0;
};

/// The singles of a window: the opener, then those from `second` on.
struct Members {
    const Single* singles;
    std::uint32_t first;
    std::uint32_t second;
    PETACQ_HD const Single& operator()(std::uint32_t k) const {
        return singles[k == 0 ? first : second + k - 1];
    }
};

struct CountPairs {
    std::uint32_t* count;
    PETACQ_HD void operator()(std::uint32_t, std::uint32_t) const { ++*count; }
};

__device__ inline std::uint32_t pairs_of_multiple(const Members& members, std::uint32_t size,
                                                  bool opener_only, const FindRules& rules) {
    std::uint32_t pairs = 0;
    resolve_multiple(size, opener_only, rules.policy, rules.pair, members, CountPairs{&pairs});
    return pairs;
}

/// Members of a group that stand in at least one pair.
__device__ inline std::uint32_t members_used(const Members& members, std::uint32_t size, std::uint32_t pairs,
                                             const FindRules& rules) {
    if (rules.policy != MultiplesPolicy::take_all_goods) return 2 * pairs;  // one pair at most
    std::uint32_t used = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint32_t crystal = members(i).crystal;
        for (std::uint32_t j = 0; j < size; ++j) {
            if (rules.pair.good(crystal, members(j).crystal)) {
                ++used;
                break;
            }
        }
    }
    return used;
}

/// Prompt records from the window of `first` that holds `size` singles. In window mode "every" a single is
/// counted as the opener of its own window, and each partner as reused.
template <bool greedy>
__device__ std::uint32_t tally_window(const Single* singles, std::uint32_t first, std::uint32_t size,
                                      const FindRules& rules, Tally& tally) {
    const std::uint32_t weight = greedy ? size : 1;
    if (size == 1) {
        ++tally.unpaired;
        return 0;
    }
    if (size == 2) {
        const std::uint32_t a = singles[first].crystal;
        const std::uint32_t b = singles[first + 1].crystal;
        if (rules.pair.good(a, b)) {
            ++tally.prompts;
            if (!greedy) ++tally.reused;
            return 1;
        }
        if (a == b) {
            tally.same_crystal += weight;
        } else {
            tally.geometry += weight;
        }
        return 0;
    }
    if (size > rules.max_multiplicity) {
        tally.oversize += weight;
        return 0;
    }
    const Members members{singles, first, first + 1};
    const std::uint32_t pairs = pairs_of_multiple(members, size, !greedy, rules);
    if (pairs == 0) {
        tally.dropped += weight;
        return 0;
    }
    tally.prompts += pairs;
    if (greedy) {
        const std::uint32_t used = members_used(members, size, pairs, rules);
        tally.unused += size - used;
        tally.reused += 2 * pairs - used;
    } else {
        tally.reused += 2 * pairs - 1;
    }
    return pairs;
}

/// Adds the counters of a whole warp to `counts` in shared memory.
__device__ inline void add_tally(const Tally& t, std::uint32_t* counts) {
    const auto add = [&](CountIndex index, std::uint32_t value) {
        const std::uint32_t sum = __reduce_add_sync(all_lanes, value);
        if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&counts[index], sum);
    };
    add(count_prompts, t.prompts);
    add(count_unpaired, t.unpaired);
    add(count_same_crystal, t.same_crystal);
    add(count_geometry, t.geometry);
    add(count_dropped, t.dropped);
    add(count_oversize, t.oversize);
    add(count_unused, t.unused);
    add(count_reused, t.reused);
}

}  // namespace petacq::gpu::cuda
