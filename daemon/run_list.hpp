// The runs under the data directory, as their run.json tell of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace petacq::daemon {

/// Reads files, so it may take long. Runs whose run.json has not changed are not read again. One thread at a
/// time.
class RunList {
  public:
    explicit RunList(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}

    /// The latest `limit` runs of those that began before the run `before` (absent: of all), the latest last.
    /// {"data_dir", "earlier": how many began before those, "runs": [{"run", "state", "start_utc",
    /// "stop_utc", "seconds", "prompts", "delayeds", "reason", "ledger_closed", "bytes"}]}; null is what is
    /// not known. A run that is not finished and is not `current` is "interrupted"; one whose run.json cannot
    /// be read "unreadable", with the `reason`. Throws RunDirectoryError for a directory that cannot be read,
    /// and for a `before` that is not there.
    nlohmann::json page(std::size_t limit, const std::optional<std::string>& before,
                        const std::string& current);
    /// {"run", "state", "ledger"} of one run. Throws RunDirectoryError with the reason why not.
    [[nodiscard]] nlohmann::json ledger(const std::string& run, const std::string& current) const;

  private:
    struct Known {
        std::int64_t changed_ns = 0;  ///< run.json
        std::uint64_t bytes = 0;
        nlohmann::json summary;
    };
    void refresh(const std::string& current);

    std::filesystem::path data_dir_;
    std::map<std::string, Known> known_;  ///< by run id
};

}  // namespace petacq::daemon
