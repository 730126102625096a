// The tags that are known before the simulation begins: triggers, gates, positions of the bed, angles of the
// scanner, clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/wire.hpp"
#include "tools/petsim/simulation/base/movement.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

/// Those that a source sends, in the order (time, channel, kind, value). The markers are those of the
/// options.
class TagSchedule {
  public:
    TagSchedule(std::uint16_t source, const Options& options, const Movement& movement,
                const RunClock& clock);
    /// When the next one is due.
    [[nodiscard]] std::uint64_t next() const { return done_ < tags_.size() ? tags_[done_].time : never; }
    /// That one, which must exist.
    const net::TagFrame& take() { return tags_[done_++]; }

  private:
    std::vector<net::TagFrame> tags_;
    std::size_t done_ = 0;
};

}  // namespace petacq::sim
