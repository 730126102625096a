// What is known of one source of the detector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "daemon/tracking/clock_rate.hpp"
#include "daemon/tracking/number_pattern.hpp"
#include "daemon/tracking/sequence_tracker.hpp"
#include "daemon/tracking/time_guard.hpp"
#include "net/modules.hpp"

namespace petacq::daemon {

/// Who a source is, and what it has sent.
struct SourceCounts {
    std::uint16_t id = 0;                    ///< sequenced framing
    std::uint16_t port = 0;                  ///< of the sender of the latest datagram
    std::uint32_t address = 0;               ///< likewise; host byte order; 0: none
    std::optional<std::int64_t> first_seen;  ///< host time of the first datagram, ns
    std::optional<std::int64_t> last_seen;   ///< host time of the latest datagram, ns
    net::Modules bdms;                       ///< modules in the first and last frames of its datagrams
    std::uint64_t datagrams = 0;             ///< accepted
    std::uint64_t frames = 0;                ///< in accepted datagrams
    std::uint64_t invalid_frames = 0;        ///< in datagrams without any valid frame
    std::uint64_t jumped_datagrams = 0;      ///< accepted datagrams whose frames are all time jumps
    std::uint64_t clock_jumps = 0;           ///< confirmed
    std::uint64_t steps_back = 0;            ///< confirmed, by less than max_jump
};

struct Source : SourceCounts {
    struct FrameTimes {
        std::uint64_t earliest = UINT64_MAX;
        std::uint64_t newest = 0;
        void add(std::uint64_t time) {
            earliest = std::min(earliest, time);
            newest = std::max(newest, time);
        }
    };

    explicit Source(const TimeLimits& limits) : time(limits) {}

    /// Nothing is known of its time any more.
    void forget_clock() {
        time.forget();
        frame_ns.reset();
    }

    // Its place in detector time (detector_time.hpp).
    TimeGuard time;
    std::optional<std::int64_t> frame_ns;  ///< host time of the latest believable frame; only if proven
    FrameTimes times;                      ///< since the clock began or moved
    FrameTimes row_times;                  ///< of a row that may move it
    std::uint64_t first = UINT64_MAX;      ///< earliest believed frame of a member
    /// The newest frame that it had sent when detector time started again; absent: it was not sending.
    std::optional<std::uint64_t> newest_before;
    bool member = false;
    bool moved = false;      ///< the clock has moved since the source was last in place
    bool believed = false;   ///< has been proven since it has its slot
    bool successor = false;  ///< has taken the place of a member
    bool succeeded = false;  ///< another source has taken its place

    // What it has sent.
    std::uint64_t end_of_stream = 0;  ///< accepted datagrams that ended a stream
    SequenceTracker sequence;
    NumberWatch watch;
    ClockRate rate;
};

}  // namespace petacq::daemon
