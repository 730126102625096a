// The files beside the list-mode of a run: histograms of its singles, and the ledger over time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petlm/plot/histograms.hpp"

namespace petacq::petlm {

struct Singles {
    std::string from;           ///< name of the file they were counted in
    bool all_energies = false;  ///< the spectrum is of all converted singles, not only of accepted ones
    Counts energy;              ///< [energy_bins]
    Counts crystals;            ///< [crystal] accepted singles
};

/// Counts from histograms.json of the run or, if it has none, from its singles.plm, which is read to its end;
/// none without either. Throws BadInput for a file that does not fit the scanner, and as RecordSource does.
std::optional<Singles> singles_of(const std::filesystem::path& run, const config::Scanner& scanner);

/// Rows of ledger.csv: docs/reference/ledger.md.
struct LedgerRows {
    std::vector<std::uint64_t> from_ticks;
    std::vector<std::uint64_t> to_ticks;
    /// Indexed by name ("frames.late"), one number per row. Counters with unknown values are left out.
    std::map<std::string, std::vector<std::int64_t>> counters;

    [[nodiscard]] bool has(const std::string& counter) const { return counters.count(counter) != 0; }
    [[nodiscard]] std::size_t size() const { return to_ticks.size(); }
};

struct LedgerOverTime {
    std::optional<LedgerRows> rows;  ///< none without the file, or without rows in it
    std::string trouble;             ///< why rows are missing; empty if none are
};

/// The rows before the first damaged one: a power cut leaves an empty file, or zeros after the last row on
/// the disk. Neighbouring rows of a long run are added together.
LedgerOverTime ledger_over_time(const std::filesystem::path& run);

/// Adds neighbouring rows together until about `most` of even length are left.
LedgerRows thinned(const LedgerRows& rows, std::size_t most);

}  // namespace petacq::petlm
