// What the kernel of this host counts of the network, by the names of nstat.
#pragma once

#include <map>
#include <string>

namespace petacq::petctl {

/// "UdpNoPorts"; "eth0" (an interface, packets received).
using HostCounters = std::map<std::string, double>;

/// Of the network namespace of this process; empty where the kernel does not say.
HostCounters read_host_counters();
/// What has grown, by how much.
HostCounters growth(const HostCounters& before, const HostCounters& after);

}  // namespace petacq::petctl
