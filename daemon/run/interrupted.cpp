#include "daemon/run/interrupted.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "daemon/run/directory.hpp"
#include "daemon/run/list.hpp"
#include "daemon/space/reserve.hpp"
#include "daemon/system/file.hpp"
#include "daemon/system/shell_word.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// Null if it cannot be read: damaged, or the start of the run was interrupted.
json description_of(const std::filesystem::path& directory) {
    try {
        return read_run_json(directory / run_file);
    } catch (const RunDirectoryError&) {
        return nullptr;
    }
}

/// Absent: the run was not interrupted, or somebody has acknowledged it.
std::optional<InterruptedRun> interrupted_run(const std::filesystem::path& directory) {
    std::error_code error;
    if (!std::filesystem::exists(directory / reserve_file, error) || is_being_written(directory)) return {};
    InterruptedRun run{directory.filename().string(), directory, ""};
    const json content = description_of(directory);
    if (!content.is_object()) return run;
    if (content.value("state", json()) != "running") return {};
    if (const json start = content.value("start_utc", json()); start.is_string()) run.start_utc = start;
    return run;
}

}  // namespace

std::string recovery_command(const InterruptedRun& run) {
    return "petlm recover " + shell_word(run.path.string()) + " -o " + shell_word(run.id + ".recovered");
}

std::vector<InterruptedRun> find_interrupted(const std::filesystem::path& data_dir,
                                             const std::string& current) {
    std::vector<InterruptedRun> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(data_dir, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename() == current) continue;
        if (auto run = interrupted_run(entry->path())) found.push_back(std::move(*run));
    }
    if (error) {
        throw RunDirectoryError("cannot read the data directory " + data_dir.string() + ": " +
                                error.message());
    }
    std::sort(found.begin(), found.end(), [](const InterruptedRun& a, const InterruptedRun& b) {
        return std::tie(a.start_utc, a.id) < std::tie(b.start_utc, b.id);
    });
    return found;
}

void acknowledge_interrupted(const std::filesystem::path& data_dir, const std::string& run,
                             const std::string& current) {
    check_run_id(run);
    const std::filesystem::path directory = data_dir / run;
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) {
        throw RunDirectoryError("there is no run '" + run + "' in " + data_dir.string());
    }
    if (run == current || is_being_written(directory))
        throw RunDirectoryError("run '" + run + "' is in progress");
    if (!interrupted_run(directory)) {
        throw RunDirectoryError("run '" + run + "' was not interrupted, or somebody has acknowledged it");
    }
    const std::filesystem::path reserve = directory / reserve_file;
    if (json content = description_of(directory); content.is_object()) {
        std::filesystem::resize_file(reserve, 0);  // the disk may be full
        content["state"] = "interrupted";
        content["stop_reason"] = "interrupted: the daemon was killed or the host lost power";
        content["acknowledged_utc"] = utc_text(std::chrono::system_clock::now());
        write_json_atomically(directory / run_file, content);
    }
    std::filesystem::remove(reserve);
    sync_directory_of(reserve);
}

}  // namespace petacq::daemon
