// petcal derive energy: energy spectra to energy factors.
#pragma once

#include <filesystem>

#include "config/scanner.hpp"

namespace petacq::petcal {

struct DeriveEnergyOptions {
    std::filesystem::path spectra;
    std::filesystem::path calibration;  ///< the one that was in use
    std::filesystem::path output;
    std::filesystem::path report;  ///< empty: none
    bool partial = false;          ///< write a result although units are refused
};

/// The factors of a crystal become those in use, times 511 keV / photopeak. Prints a summary and the crystals
/// without a photopeak; writes the report, then the result. Throws config::Error when the spectra do not
/// belong to the calibration, or when units are refused, unless `partial` is set and there are others.
void derive_energy(const config::Scanner& scanner, const DeriveEnergyOptions& options);

}  // namespace petacq::petcal
