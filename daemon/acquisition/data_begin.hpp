// Where in detector time the data of a run begin, and what time of day it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

/// A run may be started long before its boards send: it covers no time from before its first datagram. If
/// boards were sending when it was to start, it begins at its start. Times are ticks, but for host times. No
/// thread-safety: a value.
class DataBegin {
  public:
    /// A datagram that says what time of day a tick was.
    struct FrameArrival {
        std::uint64_t time = 0;  ///< of its last frame
        std::int64_t host_ns = 0;
    };

    /// `pause`: boards that were silent for longer were not sending.
    explicit DataBegin(std::uint64_t pause) : pause_(pause) {}

    /// Looks for data from `from` on. `newest`: of the boards that are sending; absent: none is.
    void watch(std::uint64_t from, std::optional<std::uint64_t> newest) {
        from_ = from;
        first_ = UINT64_MAX;
        before_ = newest;
        if (newest && *newest >= from) first_ = from;
    }
    /// The next datagram tells the time of day: one from long ago would add the drift of the clocks since
    /// then.
    void watch_clock() { arrival_.reset(); }
    /// Detector time starts again: no datagram so far tells its time of day.
    void forget_clock() {
        arrival_.reset();
        latest_.reset();
    }
    /// Believed frames from `earliest` to `arrival.time` or later.
    void add(std::uint64_t earliest, FrameArrival arrival) {
        latest_ = arrival;
        if (!arrival_) arrival_ = arrival;
        add_range(earliest, arrival.time);
    }
    /// Frames that were taken before detector time was known.
    void add_held(std::uint64_t earliest, std::uint64_t newest) { add_range(earliest, newest); }

    /// Data are looked for from here on.
    [[nodiscard]] std::uint64_t from() const { return from_; }
    /// The first frame is this one after all.
    void set_first(std::uint64_t time) {
        first_ = time;
        // A datagram from long before the first frame was of a source with another time.
        if (arrival_ && subtract_or_zero(time, arrival_->time) > pause_) arrival_ = latest_;
    }
    /// UINT64_MAX: no data yet.
    [[nodiscard]] std::uint64_t first() const { return first_; }
    /// Absent: no data yet. `max_offset`: by how much singles may be earlier than their frames.
    [[nodiscard]] std::optional<std::uint64_t> ticks(std::uint64_t max_offset) const {
        if (first_ == UINT64_MAX) return std::nullopt;
        if (before_ && subtract_or_zero(first_, *before_) <= pause_) return from_;
        return std::max(subtract_or_zero(first_, max_offset), from_);
    }
    /// The datagram that tells the time of day. If none has come since watch_clock(), the latest one before
    /// it.
    [[nodiscard]] const std::optional<FrameArrival>& arrival() const { return arrival_ ? arrival_ : latest_; }

  private:
    void add_range(std::uint64_t earliest, std::uint64_t newest) {
        if (newest < from_) {
            before_ = std::max(before_.value_or(0), newest);
        } else if (earliest < from_) {
            before_ = first_ = from_;
        } else {
            first_ = std::min(first_, earliest);
        }
    }

    std::uint64_t pause_;
    std::uint64_t from_ = 0;
    std::uint64_t first_ = UINT64_MAX;     ///< earliest frame from `from_` on
    std::optional<std::uint64_t> before_;  ///< newest frame before `from_`
    std::optional<FrameArrival> arrival_;
    std::optional<FrameArrival> latest_;
};

}  // namespace petacq::daemon
