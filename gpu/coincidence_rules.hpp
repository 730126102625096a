// Which singles form coincidences.
#pragma once

#include <cstdint>
#include <optional>

#include "config/choices.hpp"

namespace petacq::gpu {

using config::MultiplesPolicy;
using config::WindowMode;

struct CoincidenceRules {
    std::uint32_t window = 0;  ///< tau, ticks, inclusive
    WindowMode mode = WindowMode::single;
    MultiplesPolicy policy = MultiplesPolicy::remove_multiples;
    std::uint32_t max_multiplicity = 64;      ///< larger groups are dropped
    std::uint32_t min_module_difference = 0;  ///< circular, around the ring; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
    std::optional<std::uint64_t> delay;  ///< D, ticks; absent: no delayeds
};

/// Throws std::invalid_argument for rules that no back-end accepts: fewer than two singles in a group,
/// or a delay above 2^62 ticks.
void check_rules(const CoincidenceRules& rules);

}  // namespace petacq::gpu
