// petcal derive activity --by-coincidence: the activity of a source that emits a gamma with its positrons,
// from its own pairs, gammas and triples.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/pairs/coincidence_method.hpp"

namespace petacq::petcal {

struct ActivityByCoincidenceOptions {
    std::filesystem::path run;  ///< directory with coincidences and triples
    /// One of the two, mm: x, y, z, radius, length of a cylinder along the axis; x, y, z of a point.
    std::vector<double> cylinder;
    std::vector<double> point;
    std::optional<std::filesystem::path> background;  ///< run without a source
    std::optional<std::string> nuclide;               ///< default: the one that the operator named
    std::filesystem::path output;                     ///< JSON file to write
};

struct ActivityByCoincidence {
    estimate::CoincidenceActivity activity;
    double at_start_becquerel = 0;  ///< at the start of the run
    std::string start_utc;          ///< "": unknown
    std::string nuclide;
    double pairs = 0;
    double triples = 0;
    double spurious = 0;        ///< share of what was near the source that is not from it, subtracted
    double spurious_error = 0;  ///< of the activity by that, relative
    std::optional<double>
        lost_data;         ///< share of the data of the boards that did not arrive; absent: unknown
    double volume_ml = 0;  ///< of the cylinder; 0: a point
    double error = 0;      ///< relative, of all that is known
};

/// Reads the run and writes the output. Pairs and triples whose lines pass near the source count
/// (LineWeights), less randoms by delayeds and gammas by chance by delayed gammas; what photons that meet in
/// a detector unit change is simulated (simulate_summing). Throws config::Error for runs that do not fit the
/// method, with what was expected.
ActivityByCoincidence activity_by_coincidence(const config::Scanner& scanner,
                                              const ActivityByCoincidenceOptions& options);

std::string figures_text(const ActivityByCoincidence& found);

}  // namespace petacq::petcal
