#include "daemon/descriptor_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "daemon/logging.hpp"

namespace petacq::daemon {

namespace {

/// Run files, libraries, the GPU's devices, timers, the journal.
constexpr rlim_t own = 256;

}  // namespace

void raise_descriptor_limit(const config::Configuration& configuration) {
    rlim_t needed = own + configuration.control.max_clients + configuration.http.max_connections;
    for (const config::Socket& socket : configuration.receive.sockets)
        needed += socket.count;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == needed) return;
    log_warning(
        "at most {} files may be open, {} are needed for control.max_clients and http.max_connections: "
        "clients "
        "may keep the daemon from opening its files; raise LimitNOFILE (ulimit -n)",
        limit.rlim_cur, needed);
}

}  // namespace petacq::daemon
