// How many files and connections the daemon may have open at a time.
#pragma once

#include "config/configuration.hpp"

namespace petacq::daemon {

/// Raises the soft limit of this process (RLIMIT_NOFILE) so far that every client that is allowed may be
/// connected and the daemon can still open its files. Warns in the log when the hard limit is too low for
/// that. Before the clients come.
void raise_descriptor_limit(const config::Configuration& configuration);

}  // namespace petacq::daemon
