// Distributions without a closed inverse, as tables of equally likely values.
#pragma once

#include <array>
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
/// Kinetic energy of the beta of Lu-176, keV: an allowed spectrum with end point 593 keV.
Quantiles lutetium_beta_energies();
/// Energy deposited by a decay of Lu-176 in its own crystal, keV: the beta, and what a small crystal absorbs
/// of the gamma cascade.
Quantiles lutetium_energies();

/// The gammas that follow each beta of Lu-176 one after the other (ENSDF, A = 176). A transition without a
/// gamma gives its energy to electrons and X-rays, which stay in the crystal.
struct CascadeGamma {
    double energy;   ///< keV
    double emitted;  ///< the share of decays with the gamma
};
inline constexpr std::array<CascadeGamma, 3> lutetium_cascade{
    {{306.8, 0.936}, {201.8, 0.780}, {88.3, 0.145}}};

}  // namespace petacq::sim
