// run.json of a recovered run: its state, what was kept, what is missing, and the ledger as far as it is
// known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/series.hpp"

namespace petacq::petlm {

/// What became of one list-mode file, or of a set.
struct RecoveredFile {
    std::string name;   ///< of the file or the set
    std::string state;  ///< of the original: "complete", "truncated", "damaged", or "lost": nothing is left
    std::string why;    ///< it is lost
    daemon::RecordKind kind = daemon::RecordKind::coincidences;
    std::uint64_t records = 0;
    std::uint64_t prompts = 0;          ///< of the records
    std::uint64_t missing_records = 0;  ///< known to be missing before the last whole block
    std::uint64_t lost_bytes = 0;       ///< of the original, in no whole block
    daemon::Intervals times = {};       ///< that survived: SurvivingTimes
    /// The recovered files; first_record counts from the first one.
    std::vector<daemon::ListModePart> parts = {};

    /// Of its first record; 2^64-1 without any.
    [[nodiscard]] std::uint64_t first_time() const;
    /// All records go into one file.
    void join();
};

/// What the coincidences of a recovered run cover or, if it has none, its singles. `original`: as below.
/// `seconds`: that survived. `run_begin`: as for covered_by_survivors(). Absent if no file is left. Throws
/// BadInput.
std::optional<daemon::Coverage> recovered_coverage(const std::filesystem::path& run,
                                                   const nlohmann::json& original,
                                                   const std::vector<RecoveredFile>& files,
                                                   const daemon::Intervals& seconds,
                                                   std::optional<std::uint64_t> run_begin);

/// `original`: run.json of `run`, or null. The state is "recovered". A run that had stopped keeps its ledger;
/// the ledger of an interrupted run is the sum of the whole rows of its ledger.csv: each counter is a lower
/// bound, null where there is none, and `closed` is null. In both, `pairs.written` counts the recovered
/// records, and `pairs.write_failed` those known to be missing. Its times are those of the coverage.
nlohmann::json recovered_description(const std::filesystem::path& run, const nlohmann::json& original,
                                     const std::vector<RecoveredFile>& files,
                                     const std::optional<daemon::Coverage>& coverage);

}  // namespace petacq::petlm
