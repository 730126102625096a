#include "daemon/run/directory.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "daemon/system/file.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {
namespace {

constexpr std::size_t max_run_id = 64;

// False when the directory exists.
bool make_directory(const std::filesystem::path& data_dir, const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0777) == 0) {
        try {
            sync_directory_of(path);
        } catch (const std::system_error& error) {
            throw RunDirectoryError(std::string("data directory ") + error.what());
        }
        return true;
    }
    const int error = errno;
    if (error == EEXIST) return false;
    check_data_dir(data_dir);
    throw RunDirectoryError("cannot create a directory in the data directory " + data_dir.string() + ": " +
                            std::strerror(error));
}

}  // namespace

void check_run_id(const std::string& run_id) {
    const auto allowed = [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    if (!run_id.empty() && run_id.size() <= max_run_id && run_id.front() != '.' && run_id.front() != '-' &&
        std::all_of(run_id.begin(), run_id.end(), allowed)) {
        return;
    }
    throw RunDirectoryError(
        "run id '" + run_id.substr(0, 2 * max_run_id) +
        "': expected 1 to 64 characters out of A-Z a-z 0-9 . _ - with no . or - in front");
}

std::string run_id_from(std::chrono::system_clock::time_point now) {
    return utc_text(now, "%Y%m%dT%H%M%SZ");
}

void check_data_dir(const std::filesystem::path& data_dir) {
    struct stat status {};
    if (::stat(data_dir.c_str(), &status) != 0) {
        throw RunDirectoryError("data directory " + data_dir.string() + ": " + std::strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) {
        throw RunDirectoryError("data directory " + data_dir.string() + ": not a directory");
    }
}

RunDirectory RunDirectory::create(const std::filesystem::path& data_dir, const std::string& run_id) {
    check_run_id(run_id);
    auto path = data_dir / run_id;
    if (!make_directory(data_dir, path)) {
        throw RunDirectoryError("run id '" + run_id + "' already used: " + path.string() + " exists");
    }
    return {std::move(path), run_id};
}

RunDirectory RunDirectory::create(const std::filesystem::path& data_dir,
                                  std::chrono::system_clock::time_point now) {
    const std::string base = run_id_from(now);
    for (int n = 1;; ++n) {
        const std::string run_id = n == 1 ? base : base + "-" + std::to_string(n);
        auto path = data_dir / run_id;
        if (!make_directory(data_dir, path)) continue;
        return {std::move(path), run_id};
    }
}

void write_json_atomically(const std::filesystem::path& path, const nlohmann::json& content) {
    replace_file(path, content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace petacq::daemon
