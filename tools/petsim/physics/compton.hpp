// Compton scatter on free electrons at rest. Energies in keV; pure functions.
//
// Sources: A. H. Compton, Phys. Rev. 21 (1923) 483: energy after the scatter. O. Klein and Y. Nishina,
// Z. Phys. 52 (1929) 853: cross-section. J. C. Butcher and H. Messel, Nucl. Phys. 20 (1960) 15: how to draw
// from it.
#pragma once

#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

inline constexpr double electron_keV = 511.0;  // NOLINT(readability-identifier-naming): rest energy

/// Share of its energy that a photon keeps, scattered by an angle of that cosine:
/// 1 / (1 + k (1 - cosine)) with k = energy / 511 keV.
inline double compton_share(double energy, double cosine) {
    const double k = energy / electron_keV;
    return 1.0 / (1.0 + k - k * cosine);
}

/// The differential cross-section per solid angle, in units of half the squared electron radius:
/// P^2 (P + 1 / P - sin^2) with the share P.
double klein_nishina_density(double energy, double cosine);

/// The total cross-section of an electron, in units of Thomson's; 1 at energy 0. `energy` >= 0.
double klein_nishina_total(double energy);

/// The cosine of a scatter, drawn from klein_nishina_density(). `energy` > 0.
double draw_compton_cosine(double energy, Random& random);

}  // namespace petacq::sim
