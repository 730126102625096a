// What a run directory holds.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace petacq::petlm {

/// The list-mode files of a run directory, by name, less those that `recover` made (*.recovered.plm); of a
/// file, itself. Throws std::system_error when the
/// target is not there, daemon::NotListMode for a directory without list-mode files.
std::vector<std::filesystem::path> listmode_files(const std::filesystem::path& target);

/// run.json of a run directory; null when there is none or it is not JSON, with the reason in `why`.
nlohmann::json run_json(const std::filesystem::path& directory, std::string& why);

}  // namespace petacq::petlm
