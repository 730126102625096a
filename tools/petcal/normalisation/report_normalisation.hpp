// The report of petcal derive normalisation: an HTML file which contains all pictures and loads nothing.
#pragma once

#include <filesystem>

#include "config/scanner.hpp"
#include "tools/petcal/normalisation/derive_normalisation.hpp"

namespace petacq::petcal {

/// Figures, pictures of efficiencies and factors, dead and unseen crystals. Throws config::IoError.
void write_normalisation_report(const std::filesystem::path& file, const config::Scanner& scanner,
                                const DerivedNormalisation& derived);

}  // namespace petacq::petcal
