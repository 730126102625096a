// One directory per run, and the JSON file in it that says how the run went.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace petacq::daemon {

/// A run that cannot begin: bad or used run id, data directory missing or not writable. The message is for
/// the operator.
class RunDirectoryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline constexpr const char* coincidences_file = "coincidences.plm";
inline constexpr const char* singles_file = "singles.plm";
inline constexpr const char* run_file = "run.json";
inline constexpr const char* histograms_file = "histograms.json";
inline constexpr const char* ledger_file = "ledger.csv";

/// 1 to 64 of A-Z a-z 0-9 . _ - and no dot in front. Throws RunDirectoryError.
void check_run_id(const std::string& run_id);

/// "20261120T184500Z"
std::string run_id_from(std::chrono::system_clock::time_point now);
/// "2026-11-20T18:45:00.123Z"
std::string utc_text(std::chrono::system_clock::time_point now);

class RunDirectory {
  public:
    /// Makes <data_dir>/<run_id>. An id that was used before is refused, whatever is left of that run. Throws
    /// RunDirectoryError.
    static RunDirectory create(const std::filesystem::path& data_dir, const std::string& run_id);
    /// The same with an id from the time; "-2", "-3", ... is added when it is used already.
    static RunDirectory create(const std::filesystem::path& data_dir,
                               std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

    [[nodiscard]] const std::string& run_id() const { return run_id_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
    /// Writes run.json. Throws as write_json_atomically.
    void write_run_json(const nlohmann::json& content) const;

  private:
    RunDirectory(std::filesystem::path path, std::string run_id)
        : path_(std::move(path)), run_id_(std::move(run_id)) {}

    std::filesystem::path path_;
    std::string run_id_;
};

/// Puts the content at `path` so that at any time, power cuts included, the file is either as it was or whole
/// with the content given. Text that is not UTF-8 is replaced. One thread at a time per path. Throws
/// std::system_error.
void write_json_atomically(const std::filesystem::path& path, const nlohmann::json& content);

/// The file's name is on the disk when it returns. Throws std::system_error.
void sync_directory_of(const std::filesystem::path& file);

}  // namespace petacq::daemon
