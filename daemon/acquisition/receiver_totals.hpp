// A snapshot of the counters of a receiver.
#pragma once

#include <cstdint>

#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// ReceiverCounters as plain numbers; received = delivered + undelivered().
struct ReceiverTotals {
#define PETACQ_RECEIVER_TOTAL(section, name, ...) std::uint64_t datagrams_##name = 0;
    PETACQ_RECEIVER_COUNTERS(PETACQ_RECEIVER_TOTAL)
#undef PETACQ_RECEIVER_TOTAL
    std::uint64_t datagrams_delivered = 0;
    std::uint64_t bytes_received = 0;

    /// The received datagrams that the acquisition does not get.
    [[nodiscard]] std::uint64_t undelivered() const {
        return datagrams_malformed + datagrams_unknown_source + datagrams_dropped_no_buffer;
    }
};

ReceiverTotals& operator+=(ReceiverTotals& sum, const ReceiverTotals& more);

/// Reads each counter once. While the receiver runs, the values may be of different moments.
ReceiverTotals read_totals(const net::ReceiverCounters& counters);

/// Reads until all values are of one moment. The receiver adds to `received` last, so this is the case if
/// `received` does not change during the reading and equals the sum of its parts. Gives up after one second
/// and returns the values as they are.
ReceiverTotals read_totals_at_one_moment(const net::ReceiverCounters& counters);

}  // namespace petacq::daemon
