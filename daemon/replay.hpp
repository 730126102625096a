// petacqd --replay: sends captured datagrams through the same pipeline as live ones, as fast as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/assembly.hpp"

namespace petacq::daemon {

struct ReplayOptions {
    std::vector<std::string> files;  ///< pcap; merged by the times of their packets
    /// Start and end of the run, in ticks of detector time. Default: as in run.json next to the first file,
    /// else all data.
    std::optional<std::uint64_t> start;
    std::optional<std::uint64_t> stop;
    bool whole = false;             ///< take all data, whatever run.json says
    std::optional<std::string> id;  ///< id of the run; default: named after the time
};

/// Writes one run into the configuration's data_dir. SIGINT and SIGTERM stop it early, in order. Returns an
/// exit status. Throws config::Error for errors of the user, std::runtime_error for others.
int replay(const Inputs& inputs, const ReplayOptions& options);

}  // namespace petacq::daemon
