// Times in which a board, or a detector unit of it, sends nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

class Silences {
  public:
    /// Those of one source, and those of all units.
    Silences(const Faults& faults, std::uint16_t source, const RunClock& clock);
    /// When the board falls silent next.
    [[nodiscard]] std::uint64_t next() const { return to_come_.empty() ? never : to_come_.back().from; }
    /// It does so now.
    void begin();
    /// When it sends again after the silences that have begun.
    [[nodiscard]] std::uint64_t until() const { return until_; }
    /// Whether the board is silent at a time before next().
    [[nodiscard]] bool cover(std::uint64_t time) const { return time < until_; }
    /// Whether the board or the unit is.
    [[nodiscard]] bool cover(std::uint64_t time, std::uint32_t unit) const;

  private:
    struct Quiet {
        std::uint64_t from;
        std::uint64_t to;
        std::uint32_t unit;  // 0 for the board
    };
    std::vector<Quiet> to_come_;  // of the board, the next one last
    std::vector<Quiet> of_units_;
    std::uint64_t until_ = 0;
};

}  // namespace petacq::sim
