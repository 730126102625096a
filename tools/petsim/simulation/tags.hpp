// The tags that are known before the simulation begins: triggers, gates, positions of the bed, clock.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire.hpp"
#include "tools/petsim/simulation/movement.hpp"
#include "tools/petsim/simulation/options.hpp"

namespace petacq::sim {

/// Those that a source sends in the simulation, in the order (time, channel, kind, value). `begin_ticks`:
/// when decays begin. The markers are those of the options.
std::vector<net::TagFrame> scheduled_tags(std::uint16_t source, const Options& options,
                                          const config::Scanner& scanner, const Movement& movement,
                                          std::uint64_t begin_ticks);

}  // namespace petacq::sim
