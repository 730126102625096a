// petacqd --replay: captured datagrams through the same pipeline as live ones, as fast as it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner.hpp"

namespace petacq::daemon {

struct ReplayOptions {
    std::vector<std::string> files;  ///< pcap; merged by the time of their packets
    /// Of detector time, ticks. Absent: what run.json beside the first file says, else all there is.
    std::optional<std::uint64_t> start;
    std::optional<std::uint64_t> stop;
    bool whole = false;             ///< all there is, whatever run.json says
    std::optional<std::string> id;  ///< of the run; absent: named after the time
};

/// Makes one run in the configuration's data_dir. Ends early at SIGINT or SIGTERM, in order. Returns an exit
/// status; throws config::Error for what the user can mend, std::runtime_error for the rest.
int replay(const config::Configuration& configuration, const config::Scanner& scanner,
           const config::Calibration& calibration, const ReplayOptions& options);

}  // namespace petacq::daemon
