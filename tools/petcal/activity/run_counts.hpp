// What a run has of its source: pairs, gammas and triples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/activity/line_weights.hpp"
#include "tools/petcal/activity/source_lines.hpp"
#include "tools/petcal/estimate/pairs/coincidence_method.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petcal {

struct RunCounts {
    estimate::CoincidenceCounts counts;
    double pairs = 0;                       ///< of all parts, from the source
    double triples = 0;                     ///< of these, with a gamma in another detector unit than the pair
    double pairs_near = 0;                  ///< pairs on lines near the source, without randoms
    double triples_near = 0;                ///< likewise
    corrections::PhotopeakWidth photopeak;  ///< of the prompts near the source

    /// The share of the pairs near the source that a photon and a gamma make: triples have none of these, and
    /// as many pairs that scattered in the source.
    [[nodiscard]] double spurious() const { return 1 - pairs / pairs_near * triples_near / triples; }
};

/// All throw config::Error for runs that do not fit the method, with what was expected.

/// Crystals in which gammas of triples were found, of 20,000 at most.
std::vector<std::uint32_t> gamma_crystals(const petlm::ExportSource& triples,
                                          const config::Geometry& geometry);
/// Randoms are subtracted by delayeds, and gammas by chance by delayed gammas.
RunCounts count(const petlm::ExportSource& pairs, const petlm::ExportSource& triples,
                const config::Geometry& geometry, const SourceLines& source, const LineWeights& weights);
/// The gammas that `directory`, a run without source, has, as those that come without the source in `run`.
void add_background(const petlm::ExportSource& run, const std::filesystem::path& directory,
                    estimate::CoincidenceCounts& counts);

[[noreturn]] void refuse_run(const petlm::ExportSource& source, const std::string& expected);

}  // namespace petacq::petcal
