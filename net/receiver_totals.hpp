// A receiver's counters, read together.
#pragma once

#include <cstdint>

#include "net/receiver.hpp"

namespace petacq::net {

/// ReceiverCounters as plain numbers; received = delivered + malformed + unknown_source + dropped_no_buffer.
struct ReceiverTotals {
    std::uint64_t datagrams_received = 0;
    std::uint64_t datagrams_delivered = 0;
    std::uint64_t datagrams_malformed = 0;
    std::uint64_t datagrams_unknown_source = 0;
    std::uint64_t datagrams_dropped_no_buffer = 0;
    std::uint64_t datagrams_dropped_kernel = 0;
    std::uint64_t datagrams_discarded_backlog = 0;
    std::uint64_t bytes_received = 0;
};

/// Reads once. While the receiver counts, the numbers may be of different moments.
ReceiverTotals read_totals(const ReceiverCounters& counters);

/// Reads until all numbers are of one moment: the receiver adds to `received` last, so they are when it
/// stands still over a reading and equals its parts. Waits for a receiver that is in the middle of counting,
/// a second at most; a sum that is wrong all that time is given out as it is.
ReceiverTotals read_totals_at_one_moment(const ReceiverCounters& counters);

}  // namespace petacq::net
