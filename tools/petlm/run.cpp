#include "tools/petlm/run.hpp"

#include <algorithm>
#include <fstream>

#include "daemon/listmode_reader.hpp"
#include "daemon/run_directory.hpp"

namespace petacq::petlm {

std::vector<std::filesystem::path> listmode_files(const std::filesystem::path& target) {
    if (!std::filesystem::is_directory(target)) return {target};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(target)) {
        // What `recover` has written beside a file of the run would count its records twice.
        const bool recovered = entry.path().stem().extension() == ".recovered";
        if (entry.path().extension() == ".plm" && !recovered) files.push_back(entry.path());
    }
    if (files.empty()) throw daemon::NotListMode(target.string() + ": a directory without list-mode files");
    std::sort(files.begin(), files.end());
    return files;
}

nlohmann::json run_json(const std::filesystem::path& directory, std::string& why) {
    const auto path = directory / daemon::run_file;
    std::ifstream in(path);
    if (!in) {
        why = path.string() + ": cannot be read";
        return nullptr;
    }
    try {
        auto json = nlohmann::json::parse(in);
        if (json.is_object()) return json;
        why = path.string() + ": not a JSON object";
    } catch (const nlohmann::json::exception& error) {
        why = path.string() + ": " + error.what();
    }
    return nullptr;
}

}  // namespace petacq::petlm
