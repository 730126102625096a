// The list-mode files and the run.json of a run directory.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/listmode/format.hpp"

namespace petacq::petlm {

/// The list-mode files of a run directory, sorted by name: those with the names that record_files() takes.
/// What somebody has made from them and put beside them is not of the run. Of a directory that has none, as
/// that of the phases of petlm gate, all but what `recover` made (*.recovered.plm). The files of a set appear
/// once, by its name. If the target is a file, that file. Throws std::system_error when the target does not
/// exist, daemon::NotListMode for a directory without list-mode files.
std::vector<std::filesystem::path> listmode_files(const std::filesystem::path& target);

/// The files of one kind in a run directory, in the order of their records: coincidences.plm or, if the run
/// was split, coincidences-0001.plm, coincidences-0002.plm, ... (the others likewise). Each may be a set. If
/// the target is a file, that file. Throws daemon::NotListMode when there is none, when a number is missing,
/// or when both forms exist; std::system_error when the target does not exist.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& target, daemon::RecordKind kind);

/// What a run may consist of that the directory has: every file of its records, run.json, and what tells of
/// the run beside them. Not what somebody has made from them. Empty if there is no such directory. Throws
/// std::system_error.
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& directory);

/// run.json of a run directory. Null if it is unreadable or not an object; `why` gives the reason.
nlohmann::json run_json(const std::filesystem::path& directory, std::string& why);

/// The state in its run.json; "interrupted" if that says "running" and nobody writes the run.
std::string state_of_run(const std::filesystem::path& directory, const nlohmann::json& run);

/// A value of a run or of a list-mode file in one line. Replaces bytes that are not UTF-8.
std::string json_line(const nlohmann::json& value);

}  // namespace petacq::petlm
