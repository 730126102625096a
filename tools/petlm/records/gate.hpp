// gate: the coincidences of a run by their phase in the cycles of a breath or heart beat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace petacq::petlm {

struct GateOptions {
    std::filesystem::path target;      ///< run directory, or a file of coincidences in one
    unsigned channel = 0;              ///< whose triggers (or openings of the gate) start the cycles
    std::uint32_t bins = 8;            ///< equal parts of a cycle
    std::optional<double> shortest_s;  ///< cycles outside these limits are rejected
    std::optional<double> longest_s;
    std::filesystem::path output;  ///< directory; empty: gate-<channel> in the run directory
    bool force = false;            ///< replace the output
};
/// Writes a list-mode file for each bin, phase-01.plm and so on, and the table phases.csv; prints the table.
/// Returns an exit status. Throws UsageError, BadInput, daemon::NotListMode, std::system_error.
int gate(const GateOptions& options);

}  // namespace petacq::petlm
