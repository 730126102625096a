// What gain steps and the temperature do to the energies and times of a detector unit.
#pragma once

#include <cstdint>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/detector/temperature.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/faults/gain_steps.hpp"

namespace petacq::sim {

/// At one time.
struct Drift {
    double gain = 1;
    double ticks = 0;          ///< raw times are later by this much
    std::uint8_t history = 0;  ///< history_gain_step if the gain has stepped
};

class UnitDrift {
  public:
    UnitDrift(const Options& options, const config::Scanner& scanner);
    /// The drift of a unit at a time in the chunk, or a little before it.
    [[nodiscard]] Drift at(std::uint32_t unit, const ChunkDraft& draft, double ticks) const {
        return drifts_ ? find(unit, draft, ticks) : Drift{};
    }
    /// Times are never off by more.
    [[nodiscard]] double furthest_ticks() const;

  private:
    [[nodiscard]] Drift find(std::uint32_t unit, const ChunkDraft& draft, double ticks) const;

    double tick_s_;
    std::uint32_t du_count_;
    GainSteps gain_steps_;
    Temperatures temperatures_;
    double clock_drift_;  ///< ticks per degree
    double gain_drift_;   ///< percent per degree
    bool drifts_;         ///< whether gains or clocks do
};

}  // namespace petacq::sim
