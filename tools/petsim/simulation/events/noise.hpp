// Counts without a photon: dark counts of detector units, and those of noisy crystals.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/physics/spectra.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

class Noise {
  public:
    /// `detector`: the true one, if any. The calibration must outlive this.
    Noise(const Options& options, const InverseCalibration& calibration, const Detector* detector);
    /// Counts per second of the noisy crystals of the true detector.
    [[nodiscard]] double crystals_hz() const { return crystals_hz_; }
    /// That exist, and give dark counts.
    [[nodiscard]] std::size_t unit_count() const { return units_.size(); }
    /// A dark count of any unit.
    void add_dark(ChunkDraft& draft, double ticks) const;
    /// All counts of these noisy crystals in a chunk of `length` ticks.
    void add_crystals(ChunkDraft& draft, double length, double tick_s) const;

  private:
    const InverseCalibration& calibration_;
    Quantiles spectrum_;
    std::vector<std::uint32_t> units_;     ///< that exist
    std::vector<std::uint32_t> crystals_;  ///< the noisy ones
    double crystals_hz_ = 0;
};

}  // namespace petacq::sim
