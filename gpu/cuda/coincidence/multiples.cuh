// Groups of more than two singles on the device. One thread handles a small group, a warp a larger one. All
// lanes of a warp call the functions named warp_* with the same arguments, and every lane gets the result.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/cuda/coincidence/search_arguments.hpp"
#include "gpu/rules/multiples.hpp"

namespace petacq::gpu::cuda {

/// A warp handles larger groups: its lanes share the nearly size^2 / 2 pairs.
inline constexpr std::uint32_t thread_group = 12;

/// The singles of a window: the opener, then those from `second` on.
struct Members {
    const Single* singles;
    std::uint32_t first;
    std::uint32_t second;
    PETACQ_HD const Single& operator()(std::uint32_t k) const {
        return singles[k == 0 ? first : second + k - 1];
    }
};

/// The pairs that a policy takes from a group.
struct Taken {
    std::uint32_t pairs = 0;
    std::uint32_t used = 0;  ///< members of at least one pair
    std::uint32_t i = 0;     ///< the pair, for a policy that takes at most one
    std::uint32_t j = 0;
};

/// The number of members that form a good pair with another member.
template <class Member, class Rule>
__device__ std::uint32_t members_in_good_pairs(const GroupPairs<Member, Rule>& group) {
    std::uint32_t used = 0;
    for (std::uint32_t i = 0; i < group.size; ++i) {
        for (std::uint32_t j = 0; j < group.size; ++j) {
            if (group.good(i, j)) {
                ++used;
                break;
            }
        }
    }
    return used;
}

/// Runs in one thread.
template <class Member, class Rule>
__device__ Taken take_from(const GroupPairs<Member, Rule>& group, MultiplesPolicy policy) {
    Taken taken;
    if (policy == MultiplesPolicy::remove_multiples) return taken;
    if (!takes_one_pair(policy)) {
        group.for_each([&](std::uint32_t, std::uint32_t, bool good) { taken.pairs += good ? 1 : 0; });
        if (taken.pairs > 0) taken.used = group.opener_only ? taken.pairs + 1 : members_in_good_pairs(group);
        return taken;
    }
    std::uint32_t goods = 0;
    WinningPair winner;
    group.search(policy, goods, winner);
    if (group.taken(policy, goods, winner)) taken = {1, 2, winner.i, winner.j};
    return taken;
}

__device__ inline WinningPair warp_best(WinningPair own) {
    for (int step = 16; step > 0; step /= 2) {
        const WinningPair other{__shfl_xor_sync(all_lanes, own.sum, step),
                                __shfl_xor_sync(all_lanes, own.i, step),
                                __shfl_xor_sync(all_lanes, own.j, step)};
        if (other.beats(own)) own = other;
    }
    return own;
}

/// The properties of a group member that a lane uses many times.
struct Held {
    std::uint32_t crystal;
    RingRule::Coordinates place;
    float energy;
};
template <class Member, class Rule>
__device__ Held hold(const GroupPairs<Member, Rule>& group, std::uint32_t k) {
    const Single single = group.member(min(k, group.size - 1));
    return {single.crystal, group.rule.coordinates_of(single.crystal), single.energy};
}
__device__ inline Held held_by(const Held& own, std::uint32_t lane) {
    const int from = static_cast<int>(lane);
    return {__shfl_sync(all_lanes, own.crystal, from),
            {__shfl_sync(all_lanes, own.place.ring, from), __shfl_sync(all_lanes, own.place.module, from)},
            __shfl_sync(all_lanes, own.energy, from)};
}

/// The same for a whole warp and groups whose candidates are all pairs. Each lane holds every 32nd member j
/// and examines its pairs with all i, which the lanes show each other.
template <class Member, class Rule>
__device__ Taken warp_take_from(const GroupPairs<Member, Rule>& group, MultiplesPolicy policy) {
    Taken taken;
    if (policy == MultiplesPolicy::remove_multiples) return taken;
    const bool all_goods = !takes_one_pair(policy);
    const bool any = among_all(policy);
    std::uint32_t goods = 0;
    WinningPair winner;
    for (std::uint32_t first_j = 0; first_j < group.size; first_j += warp_threads) {
        const std::uint32_t j = first_j + lane();
        const Held b = hold(group, j);
        bool used = false;
        // Every i counts for whether j is used; only those before j count as pairs.
        const std::uint32_t end = all_goods ? group.size : min(group.size, first_j + warp_threads);
        for (std::uint32_t first_i = 0; first_i < end; first_i += warp_threads) {
            const Held own = first_i == first_j ? b : hold(group, first_i + lane());
            const std::uint32_t count = min(warp_threads, end - first_i);
            for (std::uint32_t n = 0; n < count; ++n) {
                const Held a = held_by(own, n);
                const std::uint32_t i = first_i + n;
                const bool good = a.crystal != b.crystal && group.rule.geometry_good(a.place, b.place);
                used |= good;
                const bool candidate = i < j && j < group.size;
                goods += candidate && good ? 1 : 0;
                const WinningPair pair{a.energy + b.energy, i, j};
                if (candidate && (good || any) && pair.beats(winner)) winner = pair;
            }
        }
        taken.used += __popc(__ballot_sync(all_lanes, used && j < group.size));
    }
    goods = __reduce_add_sync(all_lanes, goods);
    if (all_goods) {
        taken.pairs = goods;
        return taken;
    }
    winner = warp_best(winner);
    return group.taken(policy, goods, winner) ? Taken{1, 2, winner.i, winner.j} : Taken{};
}

/// Calls emit(i, j, n) for each good pair of a group; n numbers them in (i, j) order.
template <class Member, class Rule, class Emit>
__device__ void warp_all_goods(const GroupPairs<Member, Rule>& group, const Emit& emit) {
    std::uint32_t before = 0;
    const std::uint32_t openers = group.opener_only ? 1 : group.size - 1;
    for (std::uint32_t i = 0; i < openers; ++i) {
        for (std::uint32_t base = i + 1; base < group.size; base += warp_threads) {
            const std::uint32_t j = base + lane();
            const bool good = j < group.size && group.good(i, j);
            const unsigned with = __ballot_sync(all_lanes, good);
            if (good) emit(i, j, before + __popc(with & lanes_below()));
            before += __popc(with);
        }
    }
}

}  // namespace petacq::gpu::cuda
