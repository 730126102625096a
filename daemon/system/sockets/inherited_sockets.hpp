// UDP sockets that the service manager opens and keeps open while the daemon restarts: sd_listen_fds(3).
#pragma once

#include <vector>

#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Assigns the sockets that the service manager passes, if any, to the receivers, in order; these then open
/// none. The sockets must be named "frames" (FileDescriptorName= of the socket unit). Call it once, before
/// the process opens descriptors or starts processes. Throws config::Error if the number of sockets differs
/// from the configuration, if one has another name, and if a build without libsystemd receives any.
void take_inherited_sockets(std::vector<net::ReceiverOptions>& receivers);

}  // namespace petacq::daemon
