// What a group of more than two singles becomes under a multiples policy, for both back-ends.
#pragma once

#include <cstdint>

#include "gpu/arithmetic.hpp"

namespace petacq::gpu {

/// Calls emit(i, j), i < j, for every pair that the policy takes from the group; `member(k)` is the k-th
/// single of the group, in order, for k < size. Candidates are all pairs, or, with `opener_only`, those that
/// contain member 0. Winners are compared by f32 energy sum; the first in (i, j) order wins a tie.
/// Quadratic in size, which the caller bounds by max_multiplicity.
template <class Member, class Emit>
PETACQ_HD void resolve_multiple(std::uint32_t size, bool opener_only, MultiplesPolicy policy,
                                const PairRule& rule, const Member& member, const Emit& emit) {
    if (policy == MultiplesPolicy::remove_multiples) return;
    const std::uint32_t openers = opener_only ? 1 : size - 1;
    std::uint32_t goods = 0;
    std::uint32_t candidates = 0;
    std::uint32_t good_i = 0, good_j = 0;  // first good pair, or the winner of the goods
    std::uint32_t best_i = 0, best_j = 0;  // winner of all
    float good_sum = -1, best_sum = -1;    // energies are not negative
    bool best_good = false;
    for (std::uint32_t i = 0; i < openers; ++i) {
        const Single& a = member(i);
        for (std::uint32_t j = i + 1; j < size; ++j) {
            const Single& b = member(j);
            const bool good = rule.good(a.crystal, b.crystal);
            const float sum = a.energy + b.energy;
            ++candidates;
            if (good) {
                ++goods;
                if (policy == MultiplesPolicy::take_all_goods) {
                    emit(i, j);
                } else if (sum > good_sum) {
                    good_sum = sum;
                    good_i = i;
                    good_j = j;
                }
            }
            if (sum > best_sum) {
                best_sum = sum;
                best_i = i;
                best_j = j;
                best_good = good;
            }
        }
    }
    switch (policy) {
        case MultiplesPolicy::take_winner_of_goods:
            if (goods > 0) emit(good_i, good_j);
            break;
        case MultiplesPolicy::take_if_only_one_good:
            if (goods == 1) emit(good_i, good_j);
            break;
        case MultiplesPolicy::take_winner_if_is_good:
            if (best_good) emit(best_i, best_j);
            break;
        case MultiplesPolicy::take_winner_if_all_are_goods:
            if (goods == candidates) emit(best_i, best_j);
            break;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_all_goods:
            break;
    }
}

/// The record of a pair; `delay` is taken off dt of a delayed.
PETACQ_HD inline Coincidence make_coincidence(const Single& a, const Single& b, Kind kind,
                                              std::uint64_t delay) {
    Coincidence c;
    c.time = a.time;
    c.dt = static_cast<std::uint32_t>(b.time - a.time - delay);
    c.crystal_a = a.crystal;
    c.crystal_b = b.crystal;
    c.energy_a = a.energy;
    c.energy_b = b.energy;
    c.kind = kind;
    return c;
}

}  // namespace petacq::gpu
