// Random positions of decays.
#pragma once

#include <vector>

#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::gammas {

/// Thread-safe.
class Positions {
  public:
    /// Values below 0 count as 0.
    explicit Positions(const corrections::Activity& activity);
    [[nodiscard]] bool any() const { return !until_.empty() && until_.back() > 0; }
    /// As often as its activity says. REQUIRES: any().
    [[nodiscard]] config::Vector3 in_activity(sim::Random& random) const;
    /// In the cylinder inside the grid, everywhere as often.
    [[nodiscard]] config::Vector3 anywhere(sim::Random& random) const;

  private:
    image::Grid grid_;
    std::vector<double> until_;  // [voxel] sum of the activity up to its end
};

}  // namespace petacq::gammas
