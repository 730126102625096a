// A prompt group shifted by the delay, for the delayeds of config::DelayedRule::shifted_group.
#pragma once

#include <cstdint>

#include "gpu/rules/multiples.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "gpu/rules/record_order.hpp"

namespace petacq::gpu {

/// Whether a single comes before a shifted opener in the order of singles. The single is not before the
/// opener itself.
PETACQ_HD inline bool before_shifted(const Single& s, const Single& opener, std::uint64_t delay) {
    const std::uint64_t after = s.time - opener.time;
    if (after != delay) return after < delay;
    return s.crystal != opener.crystal ? s.crystal < opener.crystal : s.energy < opener.energy;
}

/// A single of the group or of the window.
struct ShiftedMember {
    Single single;
    std::uint32_t index;  ///< in the group or in the window
    bool of_group;
};

/// A prompt group and the singles of the window that it opens a delay later. Together they are one group, in
/// the order of singles, with the times of the window counted from `delay` later; of equal singles those of
/// the group come first.
template <class Rule>
struct ShiftedGroup {
    const Single* group;
    std::uint32_t group_size;
    const Single* window;
    std::uint32_t window_size;
    std::uint64_t delay;
    bool opener_only;  ///< candidates are the pairs with the opener of the group
    Rule rule;

    using Member = ShiftedMember;

    /// Calls emit(a, b), a before b, for each pair that the policy takes from all members and that joins the
    /// group and the window. The cost is quadratic in the number of members.
    template <class Emit>
    PETACQ_HD void resolve(MultiplesPolicy policy, const Emit& emit) const {
        if (policy == MultiplesPolicy::remove_multiples) return;
        const bool all_goods = !takes_one_pair(policy);
        const std::uint32_t size = group_size + window_size;
        const std::uint32_t openers = opener_only ? 1 : size - 1;
        std::uint32_t candidates = 0;
        std::uint32_t goods = 0;
        Member a{};
        Member b{};
        float sum = -1;  // of the winner (a, b); energies are never negative
        bool winner_good = false;
        Cursor outer;
        for (std::uint32_t i = 0; i < openers; ++i) {
            const Member x = take(outer);
            const RingRule::Coordinates x_at = rule.coordinates_of(x.single.crystal);
            Cursor inner = outer;
            for (std::uint32_t j = i + 1; j < size; ++j) {
                const Member y = take(inner);
                const bool good = x.single.crystal != y.single.crystal &&
                                  rule.geometry_good(x_at, rule.coordinates_of(y.single.crystal));
                ++candidates;
                goods += good ? 1 : 0;
                if (all_goods) {
                    if (good && x.of_group != y.of_group) emit(x, y);
                } else if (good || among_all(policy)) {
                    const float both = x.single.energy + y.single.energy;
                    if (both <= sum) continue;  // on a tie, keep the first
                    sum = both;
                    a = x;
                    b = y;
                    winner_good = good;
                }
            }
        }
        if (!all_goods && takes_winner(policy, goods, candidates, winner_good) && a.of_group != b.of_group)
            emit(a, b);
    }

  private:
    /// The next member in order.
    struct Cursor {
        std::uint32_t in_group = 0;
        std::uint32_t in_window = 0;
    };
    PETACQ_HD Member take(Cursor& at) const {
        Single late;
        if (at.in_window < window_size) {
            late = window[at.in_window];
            late.time -= delay;
        }
        if (at.in_group < group_size) {
            const Single& early = group[at.in_group];
            if (at.in_window == window_size || !before(late, early)) return {early, at.in_group++, true};
        }
        return {late, at.in_window++, false};
    }
};

}  // namespace petacq::gpu
