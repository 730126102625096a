// Where the receivers would run.
#pragma once

#include <vector>

#include "config/configuration.hpp"
#include "daemon/preflight/finding.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Nothing on a machine of one NUMA node, and where the operator decides.
Findings check_placement(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers);

}  // namespace petacq::daemon
