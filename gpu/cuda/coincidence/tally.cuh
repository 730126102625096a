// The outcome of one window: the number of records, and which counters it adds to.
#pragma once

#include <cstdint>

#include "gpu/cuda/coincidence/multiples.cuh"
#include "gpu/cuda/coincidence/sums.cuh"
#include "gpu/cuda/coincidence/windows.cuh"

namespace petacq::gpu::cuda {

/// The counters of one thread.
struct Tally {
    std::uint32_t groups = 0;
    std::uint32_t prompts = 0;
    std::uint32_t unpaired = 0;
    std::uint32_t same_crystal = 0;
    std::uint32_t geometry = 0;
    std::uint32_t dropped = 0;
    std::uint32_t oversize = 0;
    std::uint32_t unused = 0;
    std::uint32_t reused = 0;
};

/// Whether a group has more than two singles and is not oversize.
template <bool greedy>
__device__ void tally_multiple(const Taken& taken, std::uint32_t size, Tally& tally) {
    if (taken.pairs == 0) {
        tally.dropped += greedy ? size : 1;
        return;
    }
    tally.prompts += taken.pairs;
    if (greedy) {
        tally.unused += size - taken.used;
        tally.reused += 2 * taken.pairs - taken.used;
    } else {
        tally.reused += 2 * taken.pairs - 1;
    }
}

/// Whether a warp must handle the window.
template <bool greedy>
__device__ bool for_a_warp(std::uint32_t size, const SearchRules& rules) {
    return greedy && !rules.opener_only && size > thread_group && size <= rules.max_multiplicity &&
           rules.policy != MultiplesPolicy::remove_multiples;
}

/// The number of prompt records of the window that `first` opens and that holds `size` singles. In window
/// mode "every" a single is counted as the opener of its own window and each partner as reused.
template <bool greedy, class Rule>
__device__ Taken tally_window(const SearchArguments& arguments, std::uint32_t first, std::uint32_t size,
                              Tally& tally) {
    const Single* const singles = arguments.singles;
    const SearchRules& rules = arguments.rules;
    const std::uint32_t weight = greedy ? size : 1;
    if (size == 1) {
        ++tally.unpaired;
        return {};
    }
    if (size == 2) {
        const std::uint32_t a = singles[first].crystal;
        const std::uint32_t b = singles[first + 1].crystal;
        if (pair_rule<Rule>(rules).good(a, b)) {
            ++tally.prompts;
            if (!greedy) ++tally.reused;
            return {1, 2, 0, 1};
        }
        if (a == b) {
            tally.same_crystal += weight;
        } else {
            tally.geometry += weight;
            add_refused(arguments, a, b);
        }
        return {};
    }
    if (size > rules.max_multiplicity) {
        tally.oversize += weight;
        return {};
    }
    const GroupPairs group{size, rules.opener_only, pair_rule<Rule>(rules),
                           Members{singles, first, first + 1}};
    const Taken taken = take_from(group, rules.policy);
    tally_multiple<greedy>(taken, size, tally);
    return taken;
}

/// Adds the counters of a whole warp to `counts` in shared memory.
__device__ inline void add_tally(const Tally& t, std::uint32_t* counts) {
    const auto add = [&](CountIndex index, std::uint32_t value) {
        const std::uint32_t sum = __reduce_add_sync(all_lanes, value);
        if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&counts[index], sum);
    };
    add(count_groups, t.groups);
    add(count_prompts, t.prompts);
    add(count_unpaired, t.unpaired);
    add(count_same_crystal, t.same_crystal);
    add(count_geometry, t.geometry);
    add(count_in_dropped_multiples, t.dropped);
    add(count_in_oversize_multiples, t.oversize);
    add(count_unused_in_multiples, t.unused);
    add(count_reused, t.reused);
}

}  // namespace petacq::gpu::cuda
