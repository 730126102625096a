// The gammas of pairs. Both back-ends use it, so that their triples are the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/rules/gamma_rules.hpp"

namespace petacq::gpu {

/// Adds the triples of `pairs`, which are in order of time: pair by pair, of each those with a coincident
/// gamma before those with a delayed one, and of these the gammas in order. `gammas` are in the order (time,
/// crystal, energy) and hold all of [first pair - before, last pair + reach] that belong to the segment.
/// `used` has a byte for each gamma, which is set with its first coincident triple; threads may share both,
/// each with pairs of its own.
void find_triples(std::span<const Coincidence> pairs, std::span<const Single> gammas, const GammaRules& rules,
                  std::span<std::uint8_t> used, std::vector<Triple>& triples, GammaCounts& counts);

}  // namespace petacq::gpu
