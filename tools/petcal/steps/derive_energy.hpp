// petcal derive energy: energy spectra to energy factors.
#pragma once

#include <filesystem>

#include "config/scanner/scanner.hpp"

namespace petacq::config {
struct Written;
}

namespace petacq::petcal {

struct DeriveEnergyOptions {
    std::filesystem::path spectra;
    std::filesystem::path calibration;  ///< the one that was in use
    std::filesystem::path output;
    std::filesystem::path report;  ///< empty: none
    bool partial = false;          ///< write a result although units are refused
    std::filesystem::path second;  ///< spectra of a source with another line; empty: none
    double second_line_keV = 0;    ///< its energy; NOLINT(readability-identifier-naming)
};

/// The factors of a crystal become those in use, times 511 keV / photopeak. With a second line they become
/// those of the response that both lines fix (estimate/response.hpp); a crystal without a second photopeak
/// has the median bend of its unit. Writes the report, then the result. Returns a summary and the crystals
/// without a photopeak. Throws config::Error when the spectra do not belong to the calibration, when the
/// second line is not 100 to 900 keV or too near to 511 keV, or when units are refused, unless `partial` is
/// set and there are others: a warning then names them.
config::Written derive_energy(const config::Scanner& scanner, const DeriveEnergyOptions& options);

}  // namespace petacq::petcal
