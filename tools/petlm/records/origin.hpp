// What files of records cover, and where the runs are of which they hold records: their seconds, tags and
// run.json.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::petlm {

struct RunPlace {
    std::string run_id;
    std::filesystem::path directory;  ///< empty: not found
    std::vector<std::filesystem::path> looked_in;
    daemon::Intervals times;  ///< within which its records in the target lie

    /// 'the run "r" was found neither in A nor in B'
    [[nodiscard]] std::string not_found() const;
};

/// The runs of the coverage of `target`, a run directory or a file. Each is looked for in the directory of
/// the target, in the one above, and where it was when the target was made: a directory whose run.json names
/// it.
std::vector<RunPlace> places_of_runs(const std::filesystem::path& target, const daemon::Coverage& coverage);
/// The directories of those that were found; if none was, that of the target.
std::vector<std::filesystem::path> run_directories(const std::filesystem::path& target,
                                                   const daemon::Coverage& coverage);

/// The times of the seconds of a run that can be read; none without a file of them.
daemon::Intervals recorded_times(const std::filesystem::path& run);

/// run.json of the run directory, or beside the file or one directory above it, as for the phases of petlm
/// gate, if it names the run of the description; otherwise null.
nlohmann::json run_of(const std::filesystem::path& target, const nlohmann::json& description);

/// What the records of one kind of `target`, a run directory or a file, cover: that of all its files
/// together, by their descriptions. `run`: run_of() it. The runs that can be found have their directories.
/// Throws BadInput.
daemon::Coverage coverage_of_files(const std::filesystem::path& target, daemon::RecordKind kind,
                                   const std::vector<nlohmann::json>& descriptions,
                                   const nlohmann::json& run);

/// What differs between the rules that a run states, in its run.json or its seconds, and those of records, as
/// daemon::difference_of() says it. Neither pairs nor the seconds of a run state rules of gammas, and what
/// they tell of pairs does not depend on them: gammas count where both state them.
std::string difference_from_run(daemon::RecordRules of_run, daemon::RecordRules of_records);

}  // namespace petacq::petlm
