// The energy resolution of hits that lie in one crystal.
#pragma once

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"

namespace petacq::gammas {

/// The resolution (FWHM / energy at 511 keV) with which photons of 511 keV from the centre of the scanner
/// make a photopeak as wide as `found` (corrections::PhotopeakWidth::resolution_near_peak): less than that,
/// as hits in several crystals widen it. `found` where the factors of the crystals do not differ, or where
/// the crystals see little of the centre.
double resolution_of_one_crystal(const config::Scanner& scanner, const corrections::CrystalModel& model,
                                 double found);

}  // namespace petacq::gammas
