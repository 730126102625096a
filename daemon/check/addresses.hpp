// Whether the daemon can bind its addresses and join its multicast groups.
#pragma once

#include <vector>

#include "config/configuration.hpp"
#include "daemon/check/finding.hpp"
#include "net/receiver.hpp"

namespace petacq::daemon {

/// Whether a petacqd listens on the control socket, or is about to, or holds a port of reception.
bool daemon_runs(const config::Configuration& configuration);

/// Binds the addresses of reception and HTTP for a moment, never one that is in use, and joins multicast
/// groups on another port. `receivers`: as the daemon would open them.
Findings check_addresses(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers, bool daemon_running);

}  // namespace petacq::daemon
