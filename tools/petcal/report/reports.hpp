// The reports of petcal derive: one HTML file each, which contains all pictures and loads nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/estimate/crystal_map.hpp"
#include "tools/petcal/results/derived_normalisation.hpp"
#include "tools/petcal/results/derived_times.hpp"
#include "tools/petcal/results/energy_factors.hpp"

namespace petacq::petcal {

/// The flood map of each unit with the places of its crystals, and its quality. `maps` and `known` are by
/// unit (bdm * du_count + du). Throws std::system_error.
void write_crystals_report(const std::filesystem::path& file, const config::Scanner& scanner,
                           const config::Spectra& spectra, const std::vector<UnitMap>& maps,
                           const std::vector<std::vector<KnownSpot>>& known);

/// What was measured of a second line.
struct SecondLine {
    const config::Spectra& spectra;
    const config::Calibration& in_use;
    double keV = 0;  // NOLINT(readability-identifier-naming)
};

/// Spectra before and after, maps of peaks, resolutions and, with a second line, non-linearities, and the
/// spectra of crystals without a photopeak. Throws std::system_error.
void write_energy_report(const std::filesystem::path& file, const config::Scanner& scanner,
                         const config::Spectra& spectra, const std::vector<UnitLines>& units,
                         const std::optional<SecondLine>& second);

/// Time differences before and after, changes as a histogram, as a map and by module, and the crystals
/// without an offset. Throws std::system_error.
void write_time_report(const std::filesystem::path& file, const config::Scanner& scanner,
                       const DerivedTimes& times);

/// Figures, pictures of efficiencies and factors, dead and unseen crystals. Throws config::IoError.
void write_normalisation_report(const std::filesystem::path& file, const config::Scanner& scanner,
                                const DerivedNormalisation& derived);

}  // namespace petacq::petcal
