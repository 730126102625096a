// The status document: what petctl, subscribers, HTTP and monitors see. docs/status.md has it field by field.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/acquisition.hpp"
#include "daemon/disk_space.hpp"
#include "daemon/health.hpp"
#include "daemon/latency.hpp"
#include "daemon/progress.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// Counters read at one moment; rates come from two of them.
struct StatusSample {
    std::chrono::steady_clock::time_point taken;
    std::shared_ptr<const AcquisitionSnapshot> acquisition;
};

/// The run in progress, or the last one.
struct RunStatus {
    std::string id;
    std::string note;
    std::string start_utc;
    std::optional<double> duration_s;
    std::optional<ListModeCounts> written;  ///< while it lasts
    LatencySummary latency;                 ///< likewise
    std::optional<CaptureStatus> capture;   ///< likewise, when there is one
};

struct StatusInput {
    std::string state;  ///< idle | running | stopping | failed
    std::string backend;
    std::string backend_choice;
    double uptime_s = 0;
    const config::Configuration* configuration = nullptr;
    const config::Scanner* scanner = nullptr;
    const StatusSample* now = nullptr;
    const StatusSample* before = nullptr;                          ///< one to two seconds earlier
    std::shared_ptr<const AcquisitionSnapshot> began;              ///< when the run did, or the daemon
    std::shared_ptr<const gpu::ExpectedRandoms> expected_randoms;  ///< of the latest second; may be unknown
    std::optional<double> average_randoms_per_s;                   ///< expected, since it began
    const Health* health = nullptr;
    std::vector<std::uint16_t> ports;  ///< of every socket, in the order of the configuration
    std::optional<RunStatus> run;
    std::optional<Ledger> last_run_ledger;
    DiskStatus disk;
    std::vector<StageState> stages;
    std::size_t free_batches = 0;
    std::size_t batches = 0;
    std::uint64_t pool_bytes = 0;
    std::uint64_t pipeline_bytes = 0;
    std::uint64_t log_overrun = 0;
    std::uint64_t log_unwritten = 0;
    std::uint64_t block_buffer_bytes = 0;
};

nlohmann::json make_status(const StatusInput& input);

/// As in `run.capture`; null without one.
nlohmann::json to_json(const std::optional<CaptureStatus>& capture);

}  // namespace petacq::daemon
