// Jumps of a board's clock: the times of all later datagrams, or of some, are off.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

/// What the times of a datagram carry.
struct ClockShift {
    std::uint64_t ticks = 0;  ///< added to raw times, modulo 2^64
    std::uint16_t flags = 0;  ///< TruthFlag
};

class ClockJumps {
  public:
    /// Those of one source.
    ClockJumps(const std::vector<ClockJump>& jumps, std::uint16_t source, const RunClock& clock);
    /// The shift of a datagram that begins at a time. Call it once for each.
    ClockShift of_datagram(std::uint64_t time);

  private:
    struct Jump {
        std::uint64_t at;
        std::uint64_t ticks;  // modulo 2^64
        std::uint64_t datagrams;
    };
    std::vector<Jump> jumps_;
};

}  // namespace petacq::sim
