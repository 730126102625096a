// Socket buffers, locked memory and huge pages that this host grants.
#pragma once

#include "config/configuration.hpp"
#include "daemon/preflight/finding.hpp"

namespace petacq::daemon {

/// Compares what the configuration asks for with the limits of the kernel and of this process. Allocates
/// nothing.
Findings check_memory(const config::Configuration& configuration);

}  // namespace petacq::daemon
