// The kernel's counters of what it received and discarded, in the network namespace of the daemon, and what
// they say to those who set up boards and hosts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// By the names of nstat: "UdpInCsumErrors". Packets dropped before the sockets are "SoftnetDropped", rounds
/// of receiving that ended early "SoftnetTimeSqueeze"; these count for the whole host.
using NetworkCounters = std::map<std::string, std::uint64_t, std::less<>>;

/// Those that concern received UDP datagrams, as far as the kernel has them. For once a second: it takes the
/// sums over all cores.
NetworkCounters read_network_counters(const std::filesystem::path& directory = "/proc/thread-self/net");

/// Growth of a counter; 0 if it is unknown.
std::uint64_t growth(const NetworkCounters& now, const NetworkCounters& before, std::string_view name);

/// A way in which the kernel discards datagrams.
struct NetworkFault {
    const char* code;                     ///< fixed word, docs/how-to/alarms.md
    std::array<const char*, 2> counters;  ///< nullptr: no further one
    /// Counters whose growth is part of that of `counters` and belongs to other faults.
    std::array<const char*, 6> without;
    const char* what;    ///< "datagrams with wrong UDP checksums"
    const char* advice;  ///< what to look at
    bool at_socket;      ///< counted when the datagram has found its socket, among the drops of that, too
    bool of_neighbours;  ///< what is not for the boards' ports moves the counter, too: on most networks it
                         ///< never rests

    [[nodiscard]] std::uint64_t growth(const NetworkCounters& now, const NetworkCounters& before) const;
    /// Other programs move the counters, too. So they say something only where datagrams of the boards are
    /// `missing`: nothing arrives, a source is silent, or some were lost; and only at rates of data, compared
    /// with what arrives.
    [[nodiscard]] bool matters(double per_s, double arriving_per_s, bool missing) const {
        const double least =
            of_neighbours ? std::max(100.0, 0.01 * arriving_per_s) : std::max(10.0, 0.001 * arriving_per_s);
        return missing && per_s >= least;
    }
    /// Those counters that have grown: "UdpNoPorts, Udp6NoPorts".
    [[nodiscard]] std::string counters_text(const NetworkCounters& now, const NetworkCounters& before) const;
};

std::span<const NetworkFault> network_faults();

}  // namespace petacq::daemon
