// The energy resolution of hits that lie in one crystal.
#pragma once

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

namespace petacq::gammas {

/// The resolution (FWHM / energy at 511 keV) with which photons of 511 keV from the centre of the scanner
/// make a photopeak as wide as that of `found` (corrections::PhotopeakWidth): less than that, as hits in
/// several crystals widen it. That of `found` where the factors of the crystals do not differ, or where the
/// crystals see little of the centre.
double resolution_of_one_crystal(const config::Scanner& scanner, const corrections::CrystalModel& model,
                                 const corrections::EnergyWindow& found);

}  // namespace petacq::gammas
