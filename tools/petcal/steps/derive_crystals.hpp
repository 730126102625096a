// petcal derive crystals: flood maps to crystal maps.
#pragma once

#include <filesystem>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/crystal_map.hpp"

namespace petacq::config {
struct Written;
}

namespace petacq::petcal {

struct DeriveCrystalsOptions {
    std::filesystem::path spectra;
    std::filesystem::path corrections;  ///< empty: none
    std::filesystem::path output;
    std::filesystem::path report;  ///< empty: none
    bool partial = false;          ///< write a result although units are refused
};

/// Peak positions that a person gave, by unit (bdm * du_count + du). Throws config::Error naming the file,
/// the path of the key, what was expected and what was found.
std::vector<std::vector<KnownSpot>> load_corrections(const std::filesystem::path& file,
                                                     const config::Scanner& scanner);

/// Writes the report, then the result. Returns a summary. Throws config::Error when units are refused, unless
/// `partial` is set and there are others: a warning then names them.
config::Written derive_crystals(const config::Scanner& scanner, const DeriveCrystalsOptions& options);

}  // namespace petacq::petcal
