// petcal apply: puts derived tables into a calibration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::petcal {

struct ApplyOptions {
    std::filesystem::path calibration;
    std::filesystem::path crystals;      ///< result of derive crystals; empty: none
    std::filesystem::path energy;        ///< result of derive energy; empty: none
    std::vector<std::string> bdm_ticks;  ///< "7:-640": ticks to add to the time offsets of a BDM
    std::filesystem::path output;
};

/// Units that were not derived keep what the calibration has. Throws config::Error when there is nothing to
/// apply, or when energies belong to another crystal map than that of the new calibration.
void apply(const config::Scanner& scanner, const ApplyOptions& options);

}  // namespace petacq::petcal
