// The histograms of the singles and triples of a run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "daemon/sinogram/gamma_histograms.hpp"
#include "tools/petlm/plot/histograms.hpp"

namespace petacq::petlm {

struct Singles {
    std::string from;           ///< name of the file they were counted in
    bool all_energies = false;  ///< the spectrum is of all converted singles, not only of accepted ones
    float energy_bin_keV = 0;
    Counts energy;                ///< [config::energy_bins]
    std::vector<Counts> modules;  ///< [bdm] the same of each
    Counts crystals;              ///< [crystal] accepted singles
};

/// Counts from histograms.json of the run or, if it has none, from its singles.plm, which is read to its end;
/// none without either. Throws BadInput for a file that does not fit the scanner, and as RecordSource does.
std::optional<Singles> singles_of(const std::filesystem::path& run, const config::Scanner& scanner);

struct Triples {
    config::Gammas rules;
    sinogram::GammaHistograms histograms;
};

/// Counts the triples of the run, which are read to their end; none if it has none, or if their file does not
/// tell the rules. Throws as RecordSource does.
std::optional<Triples> triples_of(const std::filesystem::path& run);

/// The spectra of the run, if it has any. Throws BadInput for a file that does not fit the scanner.
std::optional<config::Spectra> spectra_of(const std::filesystem::path& run, const config::Scanner& scanner);

}  // namespace petacq::petlm
