// Where the runs are of which a file holds records: their seconds, tags and run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"

namespace petacq::petlm {

struct RunPlace {
    std::string run_id;
    std::filesystem::path directory;  ///< empty: not found
};

/// The runs of the coverage of `target`, a run directory or a file. Each is looked for in the directory of
/// the target, in the one above, and where it was when the target was made: a directory whose run.json names
/// it.
std::vector<RunPlace> places_of_runs(const std::filesystem::path& target, const daemon::Coverage& coverage);

}  // namespace petacq::petlm
