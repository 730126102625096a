// What a run directory holds.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/listmode_format.hpp"

namespace petacq::petlm {

/// The list-mode files of a run directory, by name, less those that `recover` made (*.recovered.plm); of a
/// file, itself. Throws std::system_error when the
/// target is not there, daemon::NotListMode for a directory without list-mode files.
std::vector<std::filesystem::path> listmode_files(const std::filesystem::path& target);

/// The files of one kind of a run directory, in the order of their records: coincidences.plm, or, of a run
/// that was split, coincidences-0001.plm, coincidences-0002.plm, ... (singles likewise); of a file, itself.
/// Throws daemon::NotListMode when there is none, when one of the numbers is missing, or when there are both;
/// std::system_error when the target is not there.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& target, daemon::RecordKind kind);

/// run.json of a run directory; null when there is none or it is not JSON, with the reason in `why`.
nlohmann::json run_json(const std::filesystem::path& directory, std::string& why);

}  // namespace petacq::petlm
