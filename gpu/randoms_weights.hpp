// How full the coincidence windows were in an interval, and what follows for its pairs: the factor of those
// lost to multiples, and the weight of its delayeds.
//
// A window holds the singles from its opener up to tau ticks later: whole ticks cut both times, so two
// singles share it if they are less than w = tau + 1/2 ticks apart, on average. Let L be the annihilations
// with at least one single, per tick, and G the groups. In window mode "single" a group begins with an
// annihilation that falls in no window, and a part G w of the time lies in windows: L = G / (1 - G w). In
// mode "every" each single opens a window, so an annihilation with two singles makes two groups: L = G less
// the trues.
//
// Lost pairs, RemoveMultiples: the window of a pair must stay free of others (e^-Lw), and the pair must not
// begin in an earlier window (1 / (1 + L w), mode "single").
//
// Shifted groups: in mode "single" those on free time stand for all groups. RemoveMultiples loses a delayed
// in two windows, that of the group and the shifted one, where a prompt is lost in one: e^Lw too few. With
// TakeAllGoods a group and its window are longer than one window, so that it holds more pairs than a prompt
// group: 1 + L w / 2 too many. For the policies that choose a winner, 1 + L w / 4 fits to a few percent.
// Delayed windows: prompts lie in 2 tau + 1 ticks, delayeds in 2 (tau + 1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gpu/coincidence_rules.hpp"
#include "gpu/interval_sums.hpp"

namespace petacq::gpu {

struct RandomsWeights {
    double load = 0;  ///< L w: annihilations in the window of an opener, on average, besides its own
    /// Pairs that would be found at low rates, for each one that is found. NaN where no formula is known: for
    /// the policies other than RemoveMultiples and TakeAllGoods.
    double pile_up = 1;
    /// Random prompts for each delayed. NaN if no group was on free time.
    double delayeds = 1;
};

/// w, in ticks.
inline double window_width(const CoincidenceRules& rules) {
    return rules.window + 0.5;
}

/// L w. `counts` are those of `ticks` of detector time.
inline double window_load(const CoincidenceRules& rules, const SingleCounts& counts, std::uint64_t ticks) {
    if (ticks == 0) return 0;
    const double w = window_width(rules);
    const double in_windows = static_cast<double>(counts.groups) * w / static_cast<double>(ticks);
    if (rules.mode == WindowMode::single) {
        // More of the time lies in windows only where the interval is so short that it cuts them.
        const double part = std::min(in_windows, 0.9);
        return part / (1 - part);
    }
    if (!rules.delay) return in_windows;
    const double lost = rules.policy == MultiplesPolicy::remove_multiples ? std::exp(in_windows) : 1;
    const double trues =
        (static_cast<double>(counts.prompts) - static_cast<double>(counts.delayeds) * lost) * lost;
    const double groups = static_cast<double>(counts.groups);
    return (groups - std::clamp(trues, 0.0, groups / 2)) * w / static_cast<double>(ticks);
}

/// `counts` are those of `ticks` of detector time.
inline RandomsWeights randoms_weights(const CoincidenceRules& rules, const SingleCounts& counts,
                                      std::uint64_t ticks) {
    RandomsWeights weights;
    const double load = window_load(rules, counts, ticks);
    const bool single = rules.mode == WindowMode::single;
    const bool remove = rules.policy == MultiplesPolicy::remove_multiples;
    const bool all_goods = rules.policy == MultiplesPolicy::take_all_goods;
    weights.load = load;
    if (remove) {
        weights.pile_up = std::exp(load) * (single ? 1 + load : 1);
    } else if (!all_goods) {
        weights.pile_up = std::numeric_limits<double>::quiet_NaN();
    }

    if (rules.delayeds == DelayedRule::delayed_window) {
        weights.delayeds = (2.0 * rules.window + 1) / (2.0 * rules.window + 2);
        return weights;
    }
    if (remove) {
        weights.delayeds = std::exp(load);
    } else if (single) {
        weights.delayeds = all_goods ? 1 / (1 + load / 2) : 1 + load / 4;
    }
    if (single && counts.groups != 0) {
        weights.delayeds *=
            static_cast<double>(counts.groups) / static_cast<double>(counts.groups - counts.groups_blocked);
        if (counts.groups == counts.groups_blocked)
            weights.delayeds = std::numeric_limits<double>::quiet_NaN();
    }
    return weights;
}

}  // namespace petacq::gpu
