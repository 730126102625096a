// UDP sockets that the service manager opened and keeps open while the daemon restarts: sd_listen_fds(3).
#pragma once

#include <vector>

#include "net/receiver.hpp"

namespace petacq::daemon {

/// Puts the sockets handed over, if any, in the place of those the receivers would open, in order. They are
/// named "frames" (FileDescriptorName= of the socket unit). To be called once, before descriptors are opened
/// and processes started. Throws config::Error when they are not as many as the configuration has, when one
/// has another name, and when a build without libsystemd is handed any.
void take_inherited_sockets(std::vector<net::ReceiverOptions>& receivers);

}  // namespace petacq::daemon
