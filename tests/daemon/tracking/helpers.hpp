// Random numbers and hand-made datagrams for the tests of tracking.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/tracking/source_tracker.hpp"

namespace petacq::test {

/// SplitMix64: the same numbers everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return next() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

  private:
    std::uint64_t state_;
};

// One tick is one nanosecond here, in detector and in host time.
inline constexpr std::uint64_t ms = 1'000'000;
inline constexpr std::int64_t host_ms = 1'000'000;

inline daemon::TrackerOptions usual_options() {
    daemon::TrackerOptions o;
    o.max_disorder = 10 * ms;
    o.max_lag = 1000 * ms;
    o.max_jump = 2000 * ms;
    o.jump_confirmations = 3;
    o.source_timeout_ns = 500 * host_ms;
    o.ticks_per_ns = 1;
    o.max_offset = 100;
    o.flush_reach = 5000;
    return o;
}

/// The detector has one source, whose id is 1.
inline daemon::TrackerOptions options_for_one() {
    daemon::TrackerOptions o = usual_options();
    o.expected = {1};
    return o;
}

/// A tracker with sources that number their datagrams. With bare framing, the id of a source is the sender's
/// port.
class Detector {
  public:
    explicit Detector(const daemon::TrackerOptions& options)
        : tracker(options), bare_(options.framing == net::Framing::bare) {}

    daemon::Verdict send(std::uint16_t id, std::uint64_t first, std::uint64_t last, std::uint32_t frames,
                         std::int64_t now, std::uint8_t flags = 0) {
        return send_numbered(id, sequence[id]++, first, last, frames, now, flags);
    }
    daemon::Verdict send_numbered(std::uint16_t id, std::uint64_t number, std::uint64_t first,
                                  std::uint64_t last, std::uint32_t frames, std::int64_t now,
                                  std::uint8_t flags = 0) {
        net::Datagram d;
        d.sequence = bare_ ? 0 : number;
        d.first_time = first;
        d.last_time = last;
        d.frames = frames;
        d.timed_frames = static_cast<std::uint16_t>(frames);
        d.address = 0x7F000001;
        d.port = static_cast<std::uint16_t>(10000 + id);
        d.source = bare_ ? std::uint16_t{0} : id;
        d.flags = flags;
        return tracker.observe(d, now);
    }
    /// A datagram of 90 frames over 1 ms of detector time from `time` on. It arrives at the time of its last
    /// frame.
    daemon::Verdict tick(std::uint16_t id, std::uint64_t time) {
        return send(id, time, time + ms, 90, static_cast<std::int64_t>(time + ms));
    }
    [[nodiscard]] daemon::SourceStatus status(std::uint16_t id, std::int64_t now) const {
        for (const auto& s : tracker.status(now).sources) {
            if (bare_ ? s.port == static_cast<std::uint16_t>(10000 + id) : s.id == id) return s;
        }
        return {};
    }

    daemon::SourceTracker tracker;
    std::map<std::uint16_t, std::uint64_t> sequence;

  private:
    bool bare_;
};

/// Detector time at the start of a test: the detector has run for a while.
inline constexpr std::uint64_t start = 5'000'000 * ms;
/// The same for host time.
inline std::int64_t host(std::uint64_t time) {
    return static_cast<std::int64_t>(time);
}

/// All frames of the datagram would be time jumps.
inline bool rejected(const daemon::Verdict& v) {
    return v.use && v.time_low > v.time_high;
}
/// A frame at `time` would be accepted.
inline bool takes(const daemon::Verdict& v, std::uint64_t time) {
    return v.use && v.time_low <= time && time <= v.time_high;
}

/// All sources send 1 ms datagrams in step over [from, to) of detector time and of host time. Returns whether
/// every frame was accepted.
inline bool run(Detector& d, const std::vector<std::uint16_t>& ids, std::uint64_t from, std::uint64_t to) {
    bool all = true;
    for (std::uint64_t t = from; t < to; t += ms) {
        for (const auto id : ids) {
            const daemon::Verdict v = d.tick(id, t);
            all = all && takes(v, t) && takes(v, t + ms);
        }
    }
    return all;
}

}  // namespace petacq::test
