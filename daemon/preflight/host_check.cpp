#include "daemon/preflight/host_check.hpp"

#include <algorithm>
#include <iterator>

#include "daemon/preflight/addresses.hpp"
#include "daemon/preflight/memory.hpp"
#include "daemon/preflight/placement.hpp"

namespace petacq::daemon {

Findings check_host(const config::Configuration& configuration,
                    const std::vector<net::ReceiverOptions>& receivers, const FrameRate& rate) {
    const bool running = daemon_runs(configuration);
    Findings findings = check_addresses(configuration, receivers);
    for (const Findings& more : {check_memory(configuration), check_placement(configuration, receivers),
                                 check_disk(configuration, rate, running)})
        std::copy(more.begin(), more.end(), std::back_inserter(findings));
    return findings;
}

}  // namespace petacq::daemon
