// petacqd --check looks at the host: directories, addresses, buffers, memory and disk.
#pragma once

#include <vector>

#include "config/configuration.hpp"
#include "daemon/preflight/disk.hpp"
#include "daemon/preflight/finding.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Changes nothing, and does not disturb a daemon that is running. Takes a few seconds at most, if the disk
/// does not hang.
Findings check_host(const config::Configuration& configuration,
                    const std::vector<net::ReceiverOptions>& receivers, const FrameRate& rate);

}  // namespace petacq::daemon
