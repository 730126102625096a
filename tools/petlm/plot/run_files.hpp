// What lies beside the list-mode of a run: histograms of its singles and the ledger over time.
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

/// Singles of a run.
struct Singles {
    std::string from;           ///< name of the file
    bool all_energies = false;  ///< the spectrum is of all that were converted, not of the accepted ones only
    Counts energy;              ///< [energy_bins]
    Counts crystals;            ///< [crystal] accepted
};

/// histograms.json of the run, else its singles.plm (which is read to its end); none when there is neither.
/// Throws BadInput for a file that is not what the scanner lets expect, and as RecordSource does.
std::optional<Singles> singles_of(const std::filesystem::path& run, const config::Scanner& scanner);

/// ledger.csv: docs/ledger.md.
struct LedgerRows {
    std::vector<std::uint64_t> from_ticks;
    std::vector<std::uint64_t> to_ticks;
    /// By name ("frames.late"), one number a row. A counter that was not known is not there.
    std::map<std::string, std::vector<std::int64_t>> counters;

    [[nodiscard]] bool has(const std::string& counter) const { return counters.count(counter) != 0; }
    [[nodiscard]] std::size_t size() const { return to_ticks.size(); }
};

struct LedgerOverTime {
    std::optional<LedgerRows> rows;  ///< none when there is no file or no row in it
    std::string trouble;  ///< why there are no rows, or where they end early; empty when all is well
};

/// The rows up to the first that is none: a power cut leaves an empty file, or zeros behind the last row that
/// was on the disk. Of a long run neighbouring rows are added together.
LedgerOverTime ledger_over_time(const std::filesystem::path& run);

/// Neighbouring rows together, so that about `most` of even length are left.
LedgerRows thinned(const LedgerRows& rows, std::size_t most);

}  // namespace petacq::petlm
