// Whether the daemon can bind its addresses and join its multicast groups.
#pragma once

#include <vector>

#include "config/configuration.hpp"
#include "daemon/preflight/finding.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Whether a petacqd listens on the control socket, or is about to, or any holds a port of reception.
bool daemon_runs(const config::Configuration& configuration);

/// Opens the sockets of reception for a moment as the daemon would, with their multicast groups, and binds
/// the address of HTTP. Never disturbs a socket that is in use.
Findings check_addresses(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers);

}  // namespace petacq::daemon
