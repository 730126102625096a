// Draws a true detector. `petsim make-detector` writes it; tests use it without a file.
#pragma once

#include <cstdint>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/detector/detector.hpp"

namespace petacq::sim {

/// Spreads are standard deviations, cut at 4 of them. The keys of "made_with" are the names of the members.
struct DetectorModel {
    std::uint64_t seed = 1;        ///< the same seed and model give the same detector, everywhere
    double spot_sigma = 0.25;      ///< of the distance to the next spots
    double spot_jitter = 0.03;     ///< displacement of a spot from its place, of that distance
    double crosstalk = 0;          ///< see Detector
    double gain = 4;               ///< mean ADC counts per keV at 511 keV
    double gain_spread = 0.08;     ///< relative
    double nonlinearity = 0;       ///< mean; those of crystals lie evenly between half and 1.5 times as much
    double time_spread_ps = 500;   ///< of the time offsets
    double resolution = 0.12;      ///< mean FWHM / energy at 511 keV, where the type of a module states none
    double resolution_spread = 0;  ///< relative
    double efficiency_spread = 0;  ///< relative, around 1
    double dead = 0;               ///< share of crystals
    double noisy = 0;              ///< share of crystals
    double noise_hz = 1000;        ///< of each of these
};

/// Without jitter the spots lie in the middle of the regions of config::make_calibration with the same seed.
/// Throws config::Error for an invalid model.
Detector make_detector(const config::Scanner& scanner, const DetectorModel& model);

}  // namespace petacq::sim
