// The senders of a live benchmark: one thread for each part of the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petbench/live/stream.hpp"

namespace petacq::bench {

struct Sent {
    std::uint64_t datagrams = 0;  ///< those that end the streams included
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;          ///< payload
    double seconds = 0;               ///< from the start to the last datagram of the last sender
    double worst_delay_s = 0;         ///< by which a datagram was sent after it was due
    std::vector<double> cpu_seconds;  ///< [sender]
};

/// Sends what is due in `seconds` when the whole stream runs at `rate` frames per second, from the first pass
/// on, and ends the stream of each source. Part i goes to port i modulo their number on loopback. All threads
/// go by one clock, so that the sources have the same detector time at the same moment. Gives up when it
/// takes a quarter longer.
Sent send(LiveStream& stream, const std::vector<std::uint16_t>& ports, double rate, double seconds);

}  // namespace petacq::bench
