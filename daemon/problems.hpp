// What is wrong at this moment, by the thresholds of the configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/acquisition.hpp"
#include "daemon/disk_space.hpp"
#include "daemon/health.hpp"
#include "daemon/latency.hpp"
#include "daemon/listmode_writer.hpp"
#include "daemon/progress.hpp"

namespace petacq::daemon {

/// Everything that is looked at: two states about a second apart.
struct HealthReading {
    const config::Configuration* configuration = nullptr;
    const config::Scanner* scanner = nullptr;
    const AcquisitionSnapshot* now = nullptr;
    const AcquisitionSnapshot* before = nullptr;
    std::chrono::steady_clock::time_point taken;
    std::string last_run_failure;
    std::optional<ListModeCounts> written;  ///< of the run in progress
    std::uint64_t stalls_before = 0;
    std::optional<CaptureStatus> capture;  ///< likewise
    std::uint64_t capture_dropped_before = 0;
    std::optional<DiskStatus> disk;  ///< absent: not looked at
    LatencySummary latency;
    std::vector<StageState> stages;
};

/// A threshold that has been crossed must be crossed back by a margin: `health` says which have been.
std::vector<Problem> find_problems(const HealthReading& reading, const Health& health);

/// "source 3", or "source 10.0.0.1:9601" with bare framing.
std::string name_of_source(const SourceStatus& source, bool bare);

/// Mean over a module since the histograms before, degrees C; absent without frames. `bdm` is below
/// bdm_count.
std::optional<double> module_temperature(const AcquisitionSnapshot& now, const config::Geometry& geometry,
                                         std::uint32_t bdm);

}  // namespace petacq::daemon
