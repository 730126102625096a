// Which singles form coincidences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "config/choices.hpp"
#include "gpu/rules/gamma_rules.hpp"

namespace petacq::gpu {

using config::DelayedRule;
using config::MultiplesPolicy;
using config::WindowMode;

struct CoincidenceRules {
    /// false: no coincidences are looked for. Singles are only put in order; the other rules mean nothing.
    bool search = true;
    std::uint32_t window = 0;  ///< tau, ticks, inclusive
    /// single: a single opens a window if it lies in none, and all singles of a window may pair.
    /// single_opener: the same windows, but only the single that opens one pairs with others in it.
    /// every: each single opens a window, and pairs with others in it.
    WindowMode mode = WindowMode::single;
    MultiplesPolicy policy = MultiplesPolicy::remove_multiples;
    std::uint32_t max_multiplicity = 64;      ///< larger groups are dropped
    std::uint32_t min_module_difference = 0;  ///< circular, around the ring; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
    std::optional<std::uint64_t> delay;  ///< D, ticks; absent: no delayeds
    /// shifted_group: each prompt group is shifted by the delay as a whole. Where its opener then falls
    /// inside a prompt window, it is skipped. Otherwise it opens a window there; the policy is applied to the
    /// group and the singles of that window, and the pairs that join the two are the delayeds. In window mode
    /// "every" each single's window is a group, and none is skipped.
    /// delayed_window: every single opens the window [time + D, time + D + tau], and the policy is applied to
    /// it and the singles there.
    DelayedRule delayeds = DelayedRule::shifted_group;

    std::optional<GammaRules> gammas;  ///< absent: every single is one of a pair, and there are no triples

    /// Whether each single belongs to one window.
    [[nodiscard]] bool one_window_each() const { return mode != WindowMode::every; }
    /// Whether all pairs of a window contain its opener.
    [[nodiscard]] bool opener_only() const { return mode != WindowMode::single; }
    /// How far past a single its windows and the gammas of its pairs reach, in ticks: it is decided when the
    /// watermark lies beyond.
    [[nodiscard]] std::uint64_t reach() const {
        if (!search) return 0;
        return std::max(window + delay.value_or(0), gammas ? gammas->reach() : 0);
    }
    /// How long before a pair its gammas come at most, in ticks.
    [[nodiscard]] std::uint64_t gammas_before() const { return search && gammas ? gammas->before : 0; }
};

/// Throws std::invalid_argument for rules that no back-end accepts: fewer than two singles in a group,
/// a delay above 2^62 ticks, or shifted groups whose delay is not longer than the window.
void check_rules(const CoincidenceRules& rules);

}  // namespace petacq::gpu
