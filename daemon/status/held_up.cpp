#include "daemon/status/held_up.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/acquisition/receiver_totals.hpp"

namespace petacq::daemon {

namespace {

/// Five times the interval at which the acquisition publishes.
constexpr std::chrono::milliseconds held_up_after{500};

std::uint64_t growth(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

}  // namespace

std::shared_ptr<const AcquisitionSnapshot> with_receivers_of_now(
    std::shared_ptr<const AcquisitionSnapshot> snapshot, const std::vector<const net::Receiver*>& receivers,
    std::chrono::steady_clock::time_point now) {
    if (now - snapshot->taken < held_up_after) return snapshot;
    ReceiverTotals sum;
    for (const net::Receiver* receiver : receivers)
        sum += read_totals(receiver->counters());
    const DatagramLedger& then = snapshot->total.datagrams;
    ReceiverTotals more;
#define PETACQ_GROWTH(section, name, ...) more.datagrams_##name = growth(sum.datagrams_##name, then.name);
    PETACQ_RECEIVER_COUNTERS(PETACQ_GROWTH)
#undef PETACQ_GROWTH
    const auto add = [&](DatagramLedger& d) {
#define PETACQ_ADD(section, name, ...) d.name += more.datagrams_##name;
        PETACQ_RECEIVER_COUNTERS(PETACQ_ADD)
#undef PETACQ_ADD
        d.in_flight_at_end += growth(more.datagrams_received, more.undelivered());
    };
    auto result = std::make_shared<AcquisitionSnapshot>(*snapshot);
    add(result->total.datagrams);
    if (result->run) add(result->run->datagrams);
    result->bytes_received = std::max(result->bytes_received, sum.bytes_received);
    result->taken = now;
    return result;
}

}  // namespace petacq::daemon
