// The runs in the data directory, as their run.json files describe them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace petacq::daemon {

/// Throws RunDirectoryError with the reason when the file cannot be read or is no JSON object.
nlohmann::json read_run_json(const std::filesystem::path& file);

/// A run that ended under a daemon: of its own accord, stopped, or failed.
struct EndedRun {
    std::string id;
    std::optional<std::chrono::system_clock::time_point> stopped;
    std::string reason;  ///< why it stopped, or what failed
    bool failed = false;
    std::string verdict{};  ///< its state; empty: runs of earlier versions have none
};

/// The one whose run.json was written last. Absent: there is none, or a run was interrupted since. Throws
/// RunDirectoryError when the directory cannot be read.
std::optional<EndedRun> last_ended_run(const std::filesystem::path& data_dir);

/// Reads files and may thus take long. Does not read an unchanged run.json again. One thread at a time.
class RunList {
  public:
    explicit RunList(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}

    /// The latest `limit` runs of those that started before the run `before` (absent: of all), the latest
    /// last:
    /// {"data_dir", "earlier": how many started before these, "runs": [{"run", "state", "start_utc",
    /// "stop_utc", "seconds", "prompts", "delayeds", "singles", "reason", "ledger_closed", "verdict",
    /// "bytes", "report"}]}. Unknown values, and counts of records that a run does not write, are null. The
    /// state of an unfinished run that nobody writes is "interrupted"; that of a run with an unreadable
    /// run.json is "unreadable", and "reason" says why. Throws RunDirectoryError when the directory cannot be
    /// read or there is no run `before`.
    nlohmann::json page(std::size_t limit, const std::optional<std::string>& before,
                        const std::string& current);
    /// {"run", "state", "ledger"} of one run. Throws RunDirectoryError when there is none.
    [[nodiscard]] nlohmann::json ledger(const std::string& run, const std::string& current) const;

  private:
    struct Known {
        std::int64_t changed_ns = 0;  ///< when run.json changed
        std::uint64_t bytes = 0;
        std::shared_ptr<const nlohmann::json> summary;
    };
    void refresh(const std::string& current);

    std::filesystem::path data_dir_;
    std::map<std::string, Known> known_;  ///< by run id
};

}  // namespace petacq::daemon
