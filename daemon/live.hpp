// petacqd in live mode: receives datagrams, serves the control socket and HTTP, and writes runs until a
// signal stops it.
#pragma once

#include <filesystem>

#include "daemon/assembly.hpp"

namespace petacq::daemon {

/// `file`: the configuration, which SIGHUP reads again. Returns an exit status. Throws config::Error for
/// errors in the configuration, std::exception for unavailable sockets and memory.
int run_live(const Inputs& inputs, const std::filesystem::path& file);

}  // namespace petacq::daemon
