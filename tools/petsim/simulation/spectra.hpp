// Distributions without a closed inverse, as tables of equally likely values.
#pragma once

#include <vector>

#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

/// Draws from a density given by its values on an even grid, by linear interpolation of the inverse of its
/// distribution function.
class Quantiles {
  public:
    /// `density` at low, low + step, ...; at least two values, not all zero.
    Quantiles(const std::vector<double>& density, double low, double step);
    double draw(Random& random) const {
        const double u = random.uniform() * static_cast<double>(values_.size() - 1);
        const auto i = static_cast<std::size_t>(u);
        return values_[i] + (values_[i + 1] - values_[i]) * (u - static_cast<double>(i));
    }

  private:
    std::vector<double> values_;
};

inline constexpr double annihilation_keV = 511.0;  // NOLINT(readability-identifier-naming)

/// Cosine of the angle of a Compton scatter at 511 keV (Klein and Nishina).
Quantiles compton_cosines();
/// Share of its energy that a 511 keV photon keeps, scattered by an angle of that cosine.
inline double compton_share(double cosine) {
    return 1.0 / (2.0 - cosine);
}
/// Energy deposited by a decay of Lu-176 in its own crystal, keV: the beta spectrum (end point 593 keV) and
/// the absorbed part of the 307, 202 and 88 keV gamma cascade.
Quantiles lutetium_energies();

}  // namespace petacq::sim
