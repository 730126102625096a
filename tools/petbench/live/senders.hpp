// The senders of a live benchmark: one thread for each part of the stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/petbench/live/stream.hpp"

namespace petacq::bench {

/// A stretch of host time in which a stream is sent at one rate.
struct Phase {
    LiveStream* stream = nullptr;
    double rate = 0;  ///< frames per second
    double seconds = 0;
};

/// What senders do with datagrams that they could not send in time.
enum class Behind : std::uint8_t {
    catch_up,  ///< send all; give up when it takes a quarter longer
    leave_out  ///< send none of them when they are 5 ms late, as boards with less data: no number is missing
};

struct Sent {
    std::uint64_t datagrams = 0;  ///< those that end the streams included
    std::uint64_t frames = 0;
    std::vector<std::uint64_t> phase_frames;  ///< [phase] of these
    std::uint64_t bytes = 0;                  ///< payload
    double seconds = 0;                       ///< from the start to the last datagram of the last sender
    double worst_delay_s = 0;                 ///< by which a datagram was sent after it was due
    std::vector<double> cpu_seconds;          ///< [sender]
};

using SendClock = std::chrono::steady_clock;
/// What it takes to begin every thread: the start of the senders from now.
constexpr std::chrono::milliseconds every_thread_has_begun{20};

/// Sends what is due in each phase, from `start` on, and then ends the stream of each source. Times and
/// numbers continue from phase to phase. Part i goes to port i modulo their number on loopback. All threads
/// go by one clock, so that the sources have the same detector time at the same moment. Throws
/// std::invalid_argument if the streams do not have the same sources.
Sent send(std::span<const Phase> phases, const std::vector<std::uint16_t>& ports, SendClock::time_point start,
          Behind behind);

}  // namespace petacq::bench
