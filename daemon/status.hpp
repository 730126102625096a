// The status document: what petctl, subscribers and monitors see. docs/status.md has it field by field.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/acquisition.hpp"

namespace petacq::daemon {

/// Counters read at one moment; rates come from two of them.
struct StatusSample {
    std::chrono::steady_clock::time_point taken;
    std::shared_ptr<const AcquisitionSnapshot> acquisition;
    std::uint64_t bytes_received = 0;
};

/// The run in progress, or the last one.
struct RunStatus {
    std::string id;
    std::string note;
    std::string start_utc;
    std::optional<double> duration_s;
    std::optional<ListModeCounts> written;  ///< while it lasts
};

struct StatusInput {
    std::string state;  ///< idle | running | stopping | failed
    std::string backend;
    double uptime_s = 0;
    const config::Configuration* configuration = nullptr;
    const config::Scanner* scanner = nullptr;
    const StatusSample* now = nullptr;
    const StatusSample* before = nullptr;  ///< about a second earlier
    std::vector<std::uint16_t> ports;      ///< of every socket, in the order of the configuration
    std::optional<RunStatus> run;
    std::optional<Ledger> last_run_ledger;
    std::string last_run_failure;  ///< of the last run; empty when it ended well
    std::size_t free_batches = 0;
    std::size_t batches = 0;
    std::uint64_t pool_bytes = 0;
    std::uint64_t pipeline_bytes = 0;
    std::uint64_t stalls_before = 0;  ///< of the run's writers, at the sample before
    std::uint64_t log_overrun = 0;
    std::uint64_t log_unwritten = 0;
    std::uint64_t block_buffer_bytes = 0;
};

nlohmann::json make_status(const StatusInput& input);

}  // namespace petacq::daemon
