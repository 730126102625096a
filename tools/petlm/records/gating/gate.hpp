// gate: the coincidences or triples of a run by their phase in the cycles of a breath or heart beat.
#pragma once

#include <filesystem>

#include "tools/petlm/records/gating/phases.hpp"

namespace petacq::petlm {

struct GateOptions : PhaseOptions {
    std::filesystem::path target;  ///< run directory, or a file of coincidences or triples in one
    /// Directory; empty: gate-<channel> in the run directory, for triples gate-<channel>-triples.
    std::filesystem::path output;
    bool triples = false;  ///< of a run directory, take the triples
    bool force = false;    ///< replace the output
    bool as_json = false;  ///< print what was written as JSON
};
/// Writes a list-mode file for each bin, phase-01.plm and so on, and the table phases.csv; prints the table.
/// Returns an exit status. Throws UsageError, BadInput, daemon::NotListMode, std::system_error.
int gate(const GateOptions& options);

}  // namespace petacq::petlm
