// Which singles are gammas, the third photons of nuclides that emit one with the positron, and to which pairs
// they belong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "config/choices.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

using config::GammaPolicy;

/// A single inside the gamma window is a gamma and takes no part in groups and pairs. To a pair of time t
/// belong the gammas of [t - before, t + after]. Of these, `all` keeps each, `only_one` the one that is
/// alone, `nearest` the one nearest to t, the first of several in the order (time, crystal, energy).
struct GammaRules {
    float lower = 0;           ///< keV, inclusive; the window has no energy in common with the energy window
    float upper = 0;           ///< keV, inclusive
    std::uint64_t before = 0;  ///< ticks
    std::uint64_t after = 0;   ///< ticks
    GammaPolicy policy = GammaPolicy::all;
    std::optional<std::uint64_t> delay;  ///< ticks; absent: no delayed gammas

    [[nodiscard]] PETACQ_HD bool contains(float energy) const { return lower <= energy && energy <= upper; }
    /// How long after a pair its gammas come at most.
    [[nodiscard]] std::uint64_t reach() const { return after + delay.value_or(0); }
};

}  // namespace petacq::gpu
