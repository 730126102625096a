// One directory per run, and the JSON file in it that describes the run.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace petacq::daemon {

/// The run cannot start: the run id is invalid or used, the data directory is missing or not writable. The
/// message is for the operator.
class RunDirectoryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline constexpr const char* coincidences_file = "coincidences.plm";
inline constexpr const char* singles_file = "singles.plm";
inline constexpr const char* triples_file = "triples.plm";
inline constexpr const char* seconds_file = "seconds.plm";
inline constexpr const char* tags_file = "tags.plm";
inline constexpr const char* run_file = "run.json";
inline constexpr const char* histograms_file = "histograms.json";
inline constexpr const char* ledger_file = "ledger.csv";
inline constexpr const char* spectra_file = "spectra.h5";

/// Accepts 1 to 64 of A-Z a-z 0-9 . _ - that do not start with a dot. Throws RunDirectoryError otherwise.
void check_run_id(const std::string& run_id);

/// The run id for a run that starts now: "20261120T184500Z".
std::string run_id_from(std::chrono::system_clock::time_point now);

/// Throws RunDirectoryError unless the data directory is a directory: without it no run can start.
void check_data_dir(const std::filesystem::path& data_dir);

class RunDirectory {
  public:
    /// Creates <data_dir>/<run_id>. Refuses a used id, even if only remains of that run exist. Throws
    /// RunDirectoryError.
    static RunDirectory create(const std::filesystem::path& data_dir, const std::string& run_id);
    /// The same with an id from the time; appends "-2", "-3", ... when the id is used.
    static RunDirectory create(const std::filesystem::path& data_dir,
                               std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

    [[nodiscard]] const std::string& run_id() const { return run_id_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }

  private:
    RunDirectory(std::filesystem::path path, std::string run_id)
        : path_(std::move(path)), run_id_(std::move(run_id)) {}

    std::filesystem::path path_;
    std::string run_id_;
};

/// Replaces the file as replace_file does (daemon/system/file.hpp). Text that is not UTF-8 is replaced.
/// Throws std::system_error.
void write_json_atomically(const std::filesystem::path& path, const nlohmann::json& content);

}  // namespace petacq::daemon
