// The limit on open files and connections.
#pragma once

#include "config/configuration.hpp"

namespace petacq::daemon {

/// Raises the soft limit of this process (RLIMIT_NOFILE) so that the daemon can open its files while the
/// largest configured number of clients is connected. Logs a warning if the hard limit is too low. Call it
/// before clients can connect.
void raise_descriptor_limit(const config::Configuration& configuration);

}  // namespace petacq::daemon
