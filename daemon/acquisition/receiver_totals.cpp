#include "daemon/acquisition/receiver_totals.hpp"

#include <chrono>
#include <thread>

namespace petacq::daemon {

ReceiverTotals& operator+=(ReceiverTotals& sum, const ReceiverTotals& more) {
#define PETACQ_ADD(section, name, ...) sum.datagrams_##name += more.datagrams_##name;
    PETACQ_RECEIVER_COUNTERS(PETACQ_ADD)
#undef PETACQ_ADD
    sum.datagrams_delivered += more.datagrams_delivered;
    sum.bytes_received += more.bytes_received;
    return sum;
}

ReceiverTotals read_totals(const net::ReceiverCounters& c) {
    ReceiverTotals t;
#define PETACQ_READ(section, name, ...) t.datagrams_##name = c.datagrams_##name.value();
    PETACQ_RECEIVER_COUNTERS(PETACQ_READ)
#undef PETACQ_READ
    t.datagrams_delivered = c.datagrams_delivered.value();
    t.bytes_received = c.bytes_received.value();
    return t;
}

ReceiverTotals read_totals_at_one_moment(const net::ReceiverCounters& c) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (true) {
        const ReceiverTotals t = read_totals(c);
        const bool stood_still = c.datagrams_received.value() == t.datagrams_received;
        if (stood_still && t.datagrams_delivered + t.undelivered() == t.datagrams_received) return t;
        if (std::chrono::steady_clock::now() > give_up) return t;
        std::this_thread::yield();
    }
}

}  // namespace petacq::daemon
