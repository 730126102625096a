// Steps of the gain: from a time on the energies of a module are higher or lower.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

class GainSteps {
  public:
    explicit GainSteps(std::vector<GainStep> steps) : steps_(std::move(steps)) {}
    [[nodiscard]] bool none() const { return steps_.empty(); }
    /// What the gains of a module are multiplied by at a time.
    [[nodiscard]] double factor(std::uint32_t bdm, double at_s) const {
        double gain = 1;
        for (const GainStep& step : steps_) {
            if (step.bdm == bdm && at_s >= step.at_s) gain *= 1 + step.percent / 100;
        }
        return gain;
    }

  private:
    std::vector<GainStep> steps_;
};

}  // namespace petacq::sim
