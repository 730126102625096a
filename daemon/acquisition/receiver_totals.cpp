#include "daemon/acquisition/receiver_totals.hpp"

#include <chrono>
#include <thread>

namespace petacq::daemon {

ReceiverTotals& operator+=(ReceiverTotals& sum, const ReceiverTotals& more) {
    sum.datagrams_received += more.datagrams_received;
    sum.datagrams_delivered += more.datagrams_delivered;
    sum.datagrams_malformed += more.datagrams_malformed;
    sum.datagrams_unknown_source += more.datagrams_unknown_source;
    sum.datagrams_dropped_no_buffer += more.datagrams_dropped_no_buffer;
    sum.datagrams_dropped_kernel += more.datagrams_dropped_kernel;
    sum.datagrams_discarded_backlog += more.datagrams_discarded_backlog;
    sum.bytes_received += more.bytes_received;
    return sum;
}

ReceiverTotals read_totals(const net::ReceiverCounters& c) {
    ReceiverTotals t;
    t.datagrams_received = c.datagrams_received.value();
    t.datagrams_delivered = c.datagrams_delivered.value();
    t.datagrams_malformed = c.datagrams_malformed.value();
    t.datagrams_unknown_source = c.datagrams_unknown_source.value();
    t.datagrams_dropped_no_buffer = c.datagrams_dropped_no_buffer.value();
    t.datagrams_dropped_kernel = c.datagrams_dropped_kernel.value();
    t.datagrams_discarded_backlog = c.datagrams_discarded_backlog.value();
    t.bytes_received = c.bytes_received.value();
    return t;
}

ReceiverTotals read_totals_at_one_moment(const net::ReceiverCounters& c) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (true) {
        const ReceiverTotals t = read_totals(c);
        const std::uint64_t parts = t.datagrams_delivered + t.datagrams_malformed +
                                    t.datagrams_unknown_source + t.datagrams_dropped_no_buffer;
        const bool stood_still = c.datagrams_received.value() == t.datagrams_received;
        if (stood_still && parts == t.datagrams_received) return t;
        if (std::chrono::steady_clock::now() > give_up) return t;
        std::this_thread::yield();
    }
}

}  // namespace petacq::daemon
