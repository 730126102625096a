// petcal derive normalisation: the normalisation of a scanner from the run of a known cylinder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/results/derived_normalisation.hpp"

namespace petacq::petcal {

struct DeriveNormalisationOptions {
    std::filesystem::path run;     ///< run directory with coincidences, or a file of them
    std::vector<double> cylinder;  ///< mm: x, y, z, radius, length; along the axis
    double attenuation_per_cm = 0.096;
    std::optional<double> depth_mm;  ///< mean depth of interaction; absent: by the absorption of the crystals
    std::filesystem::path output;
    std::filesystem::path report;  ///< empty: none
};

/// Finds efficiencies and factors from the prompts of the run less its expected randoms, and writes them.
/// Throws config::Error when the run was taken with another scanner, when nothing tells its randoms, when
/// most prompts miss the source, when there are too few, and when the run cannot be read.
DerivedNormalisation derive_normalisation(const config::Scanner& scanner,
                                          const DeriveNormalisationOptions& options);

}  // namespace petacq::petcal
