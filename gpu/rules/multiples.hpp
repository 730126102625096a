// The multiples policies: which pairs a group of more than two singles yields. Both back-ends take all good
// pairs under a policy that may take several. What the randoms estimate knows about a policy is in
// gpu/randoms/.
#pragma once

#include <cstdint>

#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// The pair with the largest f32 energy sum among those examined. The first in (i, j) order wins a tie.
struct WinningPair {
    float sum = -1;  ///< -1 means no pair yet, since energies are never negative
    std::uint32_t i = 0;
    std::uint32_t j = 0;
    PETACQ_HD bool beats(const WinningPair& o) const {
        if (sum != o.sum) return sum > o.sum;
        return i != o.i ? i < o.i : j < o.j;
    }
};

/// Whether a policy takes at most one pair of a group.
PETACQ_HD inline bool takes_one_pair(MultiplesPolicy policy) {
    switch (policy) {
        case MultiplesPolicy::take_all_goods:
            return false;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_if_only_one_good:
        case MultiplesPolicy::take_winner_if_is_good:
        case MultiplesPolicy::take_winner_if_all_are_goods:
            break;
    }
    return true;
}

/// Whether a policy picks the winner among all candidates rather than among the good ones.
PETACQ_HD inline bool among_all(MultiplesPolicy policy) {
    switch (policy) {
        case MultiplesPolicy::take_winner_if_is_good:
        case MultiplesPolicy::take_winner_if_all_are_goods:
            return true;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_all_goods:
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_if_only_one_good:
            break;
    }
    return false;
}

/// Whether a policy that takes at most one pair takes the winner, given that `goods` of the candidates are
/// good.
PETACQ_HD inline bool takes_winner(MultiplesPolicy policy, std::uint32_t goods, std::uint32_t candidates,
                                   bool winner_good) {
    switch (policy) {
        case MultiplesPolicy::take_winner_of_goods:
            return goods > 0;
        case MultiplesPolicy::take_if_only_one_good:
            return goods == 1;
        case MultiplesPolicy::take_winner_if_is_good:
            return winner_good;
        case MultiplesPolicy::take_winner_if_all_are_goods:
            return goods == candidates;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_all_goods:
            break;
    }
    return false;
}

/// The pairs (i, j), i < j, of a group of `size` singles. `member(k)` is the k-th single in order.
/// Candidates are all pairs or, with `opener_only`, only those that contain member 0.
/// `Rule`: a PairRule, or one of the two that it may be.
template <class Member, class Rule = PairRule>
struct GroupPairs {
    std::uint32_t size;
    bool opener_only;
    Rule rule;
    Member member;

    PETACQ_HD std::uint32_t candidates() const {
        return opener_only ? size - 1 : static_cast<std::uint32_t>(std::uint64_t{size} * (size - 1) / 2);
    }
    PETACQ_HD bool good(std::uint32_t i, std::uint32_t j) const {
        return rule.good(member(i).crystal, member(j).crystal);
    }
    /// Calls look(i, j, good) for every candidate, in (i, j) order.
    template <class Look>
    PETACQ_HD void for_each(const Look& look) const {
        const std::uint32_t openers = opener_only ? 1 : size - 1;
        for (std::uint32_t i = 0; i < openers; ++i) {
            const std::uint32_t crystal = member(i).crystal;
            for (std::uint32_t j = i + 1; j < size; ++j)
                look(i, j, rule.good(crystal, member(j).crystal));
        }
    }
    /// Counts the good candidates and finds the winner that the policy picks.
    PETACQ_HD void search(MultiplesPolicy policy, std::uint32_t& goods, WinningPair& winner) const {
        const bool all = among_all(policy);
        for_each([&](std::uint32_t i, std::uint32_t j, bool is_good) {
            goods += is_good ? 1 : 0;
            if (!is_good && !all) return;
            const float sum = member(i).energy + member(j).energy;
            if (sum > winner.sum) winner = {sum, i, j};  // on a tie, keep the first
        });
    }
    /// Whether a policy that takes at most one pair takes the winner of all candidates, given that `goods` of
    /// them are good.
    PETACQ_HD bool taken(MultiplesPolicy policy, std::uint32_t goods, const WinningPair& winner) const {
        return takes_winner(policy, goods, candidates(), winner.sum >= 0 && good(winner.i, winner.j));
    }
};
template <class Member, class Rule>
GroupPairs(std::uint32_t, bool, Rule, Member) -> GroupPairs<Member, Rule>;

/// Calls emit(i, j), i < j, for every pair that the policy takes from the group. `member(k)` is the k-th
/// single of the group in order, k < size, and size is at least 2. Candidates are all pairs or, with
/// `opener_only`, only those that contain member 0. The cost is quadratic in size; the caller bounds it by
/// max_multiplicity.
template <class Member, class Rule, class Emit>
PETACQ_HD void resolve_multiple(std::uint32_t size, bool opener_only, MultiplesPolicy policy,
                                const Rule& rule, const Member& member, const Emit& emit) {
    if (policy == MultiplesPolicy::remove_multiples) return;
    const GroupPairs pairs{size, opener_only, rule, member};
    if (!takes_one_pair(policy)) {
        pairs.for_each([&](std::uint32_t i, std::uint32_t j, bool good) {
            if (good) emit(i, j);
        });
        return;
    }
    std::uint32_t goods = 0;
    WinningPair winner;
    pairs.search(policy, goods, winner);
    if (pairs.taken(policy, goods, winner)) emit(winner.i, winner.j);
}

/// Makes the record of a pair. `delay` is subtracted from the dt of a delayed pair.
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
