#include "daemon/run_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>

namespace petacq::daemon {
namespace {

constexpr std::size_t longest_run_id = 64;

[[noreturn]] void throw_errno(const std::filesystem::path& path, const std::string& what, int error) {
    throw std::system_error(error, std::generic_category(), path.string() + ": " + what);
}

std::string formatted(std::chrono::system_clock::time_point time, const char* format) {
    const std::time_t seconds =
        std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), format, &parts);
    return {text.data(), length};
}

// False when the id is used.
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
    struct stat status {};
    if (::stat(data_dir.c_str(), &status) != 0) {
        throw RunDirectoryError("data directory " + data_dir.string() + ": " + std::strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) {
        throw RunDirectoryError("data directory " + data_dir.string() + ": not a directory");
    }
    throw RunDirectoryError("cannot make a directory in the data directory " + data_dir.string() + ": " +
                            std::strerror(error));
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) throw_errno(path, "cannot make it", errno);
    std::size_t done = 0;
    int error = 0;
    while (done < text.size() && error == 0) {
        const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
        if (wrote > 0) {
            done += static_cast<std::size_t>(wrote);
        } else if (wrote == 0 || errno != EINTR) {
            error = wrote == 0 ? EIO : errno;
        }
    }
    if (error == 0 && ::fsync(file) != 0) error = errno;
    if (::close(file) != 0 && error == 0) error = errno;
    if (error != 0) throw_errno(path, "write failed", error);
}

}  // namespace

void check_run_id(const std::string& run_id) {
    const auto allowed = [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    if (!run_id.empty() && run_id.size() <= longest_run_id && run_id.front() != '.' &&
        std::all_of(run_id.begin(), run_id.end(), allowed)) {
        return;
    }
    throw RunDirectoryError("run id '" + run_id.substr(0, 2 * longest_run_id) +
                            "': expected 1 to 64 characters out of A-Z a-z 0-9 . _ - with no dot in front");
}

std::string run_id_from(std::chrono::system_clock::time_point now) {
    return formatted(now, "%Y%m%dT%H%M%SZ");
}

std::string utc_text(std::chrono::system_clock::time_point now) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(now);
    const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(now - whole).count();
    const std::string digits = std::to_string(1000 + milliseconds).substr(1);
    return formatted(now, "%Y-%m-%dT%H:%M:%S.") + digits + "Z";
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

void RunDirectory::write_run_json(const nlohmann::json& content) const {
    write_json_atomically(file(run_file), content);
}

void write_json_atomically(const std::filesystem::path& path, const nlohmann::json& content) {
    const std::filesystem::path temporary = path.string() + ".tmp";
    try {
        write_file(temporary, content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
        if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(path, "rename failed", errno);
    } catch (...) {
        ::unlink(temporary.c_str());
        throw;
    }
    sync_directory_of(path);
}

void sync_directory_of(const std::filesystem::path& file) {
    const auto directory = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) throw_errno(directory, "cannot open it", errno);
    const int error = ::fsync(handle) != 0 ? errno : 0;
    ::close(handle);
    // Some file systems cannot sync a directory; there is nothing more to do on those.
    if (error != 0 && error != EINVAL) throw_errno(directory, "sync failed", error);
}

}  // namespace petacq::daemon
