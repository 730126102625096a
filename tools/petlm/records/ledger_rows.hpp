// The ledger of a run over time, read from its ledger.csv.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace petacq::petlm {

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
    std::uint64_t lines = 0;         ///< rows in the file, before neighbouring ones were added together
    std::string trouble;             ///< why rows are missing; empty if none are
};

/// The rows before the first damaged one: a power cut leaves an empty file, or zeros after the last row on
/// the disk. Neighbouring rows of a long run are added together.
LedgerOverTime ledger_over_time(const std::filesystem::path& run);

/// Adds neighbouring rows together until about `most` of even length are left.
LedgerRows thinned(const LedgerRows& rows, std::size_t most);

}  // namespace petacq::petlm
