// Resets of a board: its clock and its sequence numbers begin again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

class BoardResets {
  public:
    /// Those of one source.
    BoardResets(const std::vector<BoardReset>& resets, std::uint16_t source, const RunClock& clock) {
        for (const BoardReset& r : resets) {
            if (r.source == source) to_come_.push_back(clock.at(r.at_s));
        }
        std::sort(to_come_.rbegin(), to_come_.rend());
    }
    [[nodiscard]] std::uint64_t next() const { return to_come_.empty() ? never : to_come_.back(); }
    /// The next one happens.
    void reset() {
        base_ = to_come_.back();
        to_come_.pop_back();
        ++epoch_;
    }
    /// Raw time of the last one: times count from there.
    [[nodiscard]] std::uint64_t base() const { return base_; }
    /// How many there have been.
    [[nodiscard]] std::uint16_t epoch() const { return epoch_; }

  private:
    std::vector<std::uint64_t> to_come_;  // the next one last
    std::uint64_t base_ = 0;
    std::uint16_t epoch_ = 0;
};

}  // namespace petacq::sim
