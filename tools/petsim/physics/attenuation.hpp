// How a material attenuates photons, by their energy.
//
// The coefficient at 511 keV is given; the shape is that of two processes. Compton scatter follows the
// Klein-Nishina cross-section (compton.hpp). Photoelectric absorption falls as the energy to the power of
// -2.6: the mean slope for lead from 100 to 500 keV in the tables of J. H. Hubbell and S. M. Seltzer (NISTIR
// 5632, 1995), which stands for all heavy elements. Edges, coherent scatter and
// pair production are left out.
#pragma once

#include <vector>

namespace petacq::sim {

inline constexpr double water_per_cm = 0.096;  ///< linear attenuation of water at 511 keV

/// Coefficients as a table by energy. Thread-safe.
class Attenuation {
  public:
    /// `per_cm`: linear attenuation at 511 keV. `photo_share`: the photoelectric share of it, 0 to 1.
    Attenuation(double per_cm, double photo_share);
    /// Linear attenuation per mm; energies up to 3000 keV.
    [[nodiscard]] double per_mm(double energy) const { return at(total_, energy); }
    /// The chance that an interaction is photoelectric.
    [[nodiscard]] double photo_share(double energy) const { return at(photo_, energy); }

  private:
    static double at(const std::vector<double>& table, double energy);

    std::vector<double> total_;  // by whole keV
    std::vector<double> photo_;
};

}  // namespace petacq::sim
