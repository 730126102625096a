#include "daemon/system/descriptor_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

/// For run files, libraries, GPU devices, timers and the journal.
constexpr rlim_t own_descriptors = 256;

}  // namespace

void raise_descriptor_limit(const config::Configuration& configuration) {
    rlim_t needed = own_descriptors + configuration.control.max_clients + configuration.http.max_connections;
    for (const config::Socket& socket : configuration.receive.sockets)
        needed += socket.count;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == needed) return;
    log_warning(
        "at most {} files may be open, but control.max_clients and http.max_connections need {}: clients may "
        "prevent the daemon from opening its files; raise LimitNOFILE (ulimit -n)",
        limit.rlim_cur, needed);
}

}  // namespace petacq::daemon
