// Packets that came in at the network interfaces of this host.
#pragma once

#include <map>
#include <string>

namespace petacq::petctl {

/// By interface.
using ReceivedPackets = std::map<std::string, double>;

/// Of the network namespace of this process; empty where the kernel does not say.
ReceivedPackets read_received_packets();
/// How many came in between two readings.
ReceivedPackets growth(const ReceivedPackets& before, const ReceivedPackets& after);

}  // namespace petacq::petctl
