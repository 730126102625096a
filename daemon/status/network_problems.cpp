// What the kernel discards on the way of datagrams to the daemon.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "daemon/status/problems.hpp"
#include "daemon/status/status.hpp"
#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

namespace {

/// The counters before what the sockets have dropped lately: receivers read their drops up to a quarter of a
/// second later.
const NetworkCounters& before_drops(const Observation& seen) {
    return seen.before->network_earlier.counters;
}

std::uint64_t growth_before_drops(const NetworkFault& fault, const Observation& seen) {
    return fault.growth(seen.now->network.counters, before_drops(seen));
}

/// Whether datagrams of the boards are missing, or may be.
bool missing(const Observation& seen, const NetworkFault& fault) {
    const AcquisitionSnapshot& now = *seen.now->acquisition;
    const DatagramLedger& a = now.total.datagrams;
    const DatagramLedger& b = seen.before->acquisition->total.datagrams;
    const bool arriving = a.received > b.received;
    if (!arriving && seen.run->current) return true;
    if (arriving && (a.lost > b.lost || (!now.total.loss_known() && !fault.of_neighbours))) return true;
    const auto& sources = now.sources.sources;
    return std::any_of(sources.begin(), sources.end(), [&](const SourceStatus& s) {
        return s.state == SourceState::silent && (arriving || s.last_seen);
    });
}

}  // namespace

std::uint64_t dropped_for_room(const Observation& seen, std::uint64_t dropped) {
    std::uint64_t other = 0;
    for (const NetworkFault& fault : network_faults())
        if (fault.at_socket) other += growth_before_drops(fault, seen);
    if (other == 0) return dropped;
    std::uint64_t room = 0;
    for (const char* const name : {"UdpRcvbufErrors", "Udp6RcvbufErrors"})
        room += growth(seen.now->network.counters, before_drops(seen), name);
    return std::min(dropped, room);
}

std::vector<Problem> find_network_problems(const Observation& seen) {
    const NetworkReading& now = seen.now->network;
    const NetworkReading& before = seen.before->network;
    const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
    const AcquisitionSnapshot& a = *seen.now->acquisition;
    const AcquisitionSnapshot& b = *seen.before->acquisition;
    const double arriving = rate(a.total.datagrams.received, b.total.datagrams.received,
                                 std::chrono::duration<double>(seen.now->taken - seen.before->taken).count());
    const std::uint64_t dropped = a.total.datagrams.dropped_kernel - b.total.datagrams.dropped_kernel;
    std::vector<Problem> found;
    for (const NetworkFault& fault : network_faults()) {
        const std::uint64_t grown = fault.growth(now.counters, before.counters);
        const std::uint64_t ours = fault.at_socket ? std::min(dropped, growth_before_drops(fault, seen)) : 0;
        const bool matters = seconds > 0 && fault.matters(static_cast<double>(grown) / seconds, arriving,
                                                          missing(seen, fault));
        if (!matters && ours == 0) continue;
        found.push_back({fault.code, 0,
                         fmt::format("{} {} ({})", std::max(grown, ours), fault.what,
                                     fault.counters_text(now.counters, before_drops(seen))),
                         fault.advice});
    }
    return found;
}

}  // namespace petacq::daemon
