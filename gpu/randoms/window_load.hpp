// How full the coincidence windows were in an interval.
//
// A window holds the singles from its opener up to tau ticks later: whole ticks cut both times, so two
// singles share it if they are less than w = tau + 1/2 ticks apart, on average. Let L be the annihilations
// with at least one single, per tick, and G the groups. In window modes "single" and "single_opener" a group
// begins with an annihilation that falls in no window, and a part G w of the time lies in windows: L = G / (1
// - G w). In mode "every" each single opens a window. One of each annihilation has no other of it in its
// window, and is unpaired if no other annihilation falls into it: U = L e^-Lw.
//
// Let q be the annihilations whose two singles an edge of a window parts, per annihilation in a window. In
// mode "single" the second single then opens a window: L = G / (1 - G w (1 - q)). In mode "every" a window
// may hold the second single alone: U = L e^-Lw(1 + q). q is 1 to 2 % at most; only the randoms estimate asks
// for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpu/interval_sums.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// w, in ticks.
inline double window_width(const CoincidenceRules& rules) {
    return rules.window + 0.5;
}

/// Whether the interval is long enough to tell rates. Otherwise a few singles that happen to lie in it would
/// fill it: windows then count as empty.
inline bool tells_rates(const CoincidenceRules& rules, std::uint64_t ticks) {
    return static_cast<double>(ticks) >= 100 * window_width(rules);
}

/// G w, the part of the time that lies in windows, unless each single opens one. `counts` are those of
/// `ticks` of detector time.
inline double part_in_windows(const CoincidenceRules& rules, const SingleCounts& counts,
                              std::uint64_t ticks) {
    if (!tells_rates(rules, ticks)) return 0;
    const double part = static_cast<double>(counts.groups) * window_width(rules) / static_cast<double>(ticks);
    // More are no singles of random times.
    return std::min(part, 0.9);
}

/// L w. `parted`: q.
inline double window_load(const CoincidenceRules& rules, const SingleCounts& counts, std::uint64_t ticks,
                          double parted = 0) {
    if (!tells_rates(rules, ticks)) return 0;
    if (rules.one_window_each()) {
        const double part = part_in_windows(rules, counts, ticks);
        return part / (1 - part * (1 - parted));
    }
    // U w = x e^-x(1 + q), where U are the unpaired. Beyond x (1 + q) = 1 it would be another solution.
    const double alone =
        static_cast<double>(counts.unpaired) * window_width(rules) / static_cast<double>(ticks);
    double load = 0;
    for (int i = 0; i < 60; ++i)
        load = std::min(alone * std::exp(load * (1 + parted)), 1 / (1 + parted));
    return load;
}

}  // namespace petacq::gpu
