// The clock of one source: its progress in detector time, robust against wild timestamps.
//
// Only the times of the first and the last valid frame of a datagram are known.
//
//   - A source is `proven` when `confirmations` datagrams in a row agree: one of the two times of each lies
//     within max_jump of the previous one. Until then nothing is known of its time.
//   - A datagram follows a proven clock if one of its times lies within max_jump of the progress, or of the
//     progress plus the time in which the source was quiet.
//   - Other datagrams are jumps. As many in a row as prove a source move its clock there.
//   - As many datagrams in a row that follow the clock, but lie more than max_disorder behind its progress,
//     are a step back: the clock moves there, too.
//
// Progress is the largest candidate so far, so that no single wild frame, early or late, moves it. The
// candidate of a datagram is the smaller of its two times; for a datagram with a single frame, the smaller of
// its time and the previous candidate. After a pause of more than max_jump, the time that the clock should
// have counts as the previous candidate: otherwise the next datagram would be a jump.
//
// Limits: two wild frames in the same datagram, both ahead by less than max_jump, move the progress. A source
// whose datagrams are further than max_jump from where its clock should be looks like one that jumps.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

/// The known times of a datagram with valid frames, in ticks.
struct DatagramTimes {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t frames = 0;  ///< at least 1
};

inline std::uint64_t time_between(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : b - a;
}

struct TimeLimits {
    std::uint64_t max_jump = 0;      ///< ticks
    std::uint64_t max_disorder = 0;  ///< ticks
    std::uint32_t confirmations = 1;
};

class TimeGuard {
  public:
    enum class Step : std::uint8_t {
        followed,
        unconfirmed,   ///< one of the first datagrams of the source, or a jump
        proven,        ///< the last of the datagrams that prove the source
        moved,         ///< the last of the datagrams that move the clock
        stepped_back,  ///< the same, by less than max_jump
    };

    explicit TimeGuard(const TimeLimits& limits)
        : max_jump_(limits.max_jump),
          max_disorder_(limits.max_disorder),
          confirmations_(std::max(limits.confirmations, 1U)) {}

    bool operator==(const TimeGuard&) const = default;

    /// `quiet`: ticks that have probably passed since the latest datagram. Sets `believed` to a time of the
    /// datagram that agrees with the clock, or with the other datagrams of its row.
    Step observe(const DatagramTimes& d, std::uint64_t quiet, std::uint64_t& believed) {
        if (proven_) {
            for (const std::uint64_t time : {progress_, add_or_max(progress_, quiet)}) {
                if (!within(d.last, time) && !within(d.first, time)) continue;
                believed = within(d.last, time) ? d.last : d.first;
                if (time != progress_) previous_ = time;
                return follow(d, believed);
            }
        }
        return elsewhere(d, believed);
    }

    /// The most common case of observe(): times in order that follow the clock. For datagrams in
    /// order, `first` and `end` are the first and the last of them; for one, both are that one.
    [[nodiscard]] bool goes_on(const DatagramTimes& first, const DatagramTimes& end) const {
        const bool in_order = progress_ <= first.first && first.first <= first.last;
        const bool near = end.last - progress_ <= max_jump_;
        return proven_ && in_order && near && first.frames != 1 && row_ == 0 && behind_ == 0;
    }
    /// Follows datagrams that end with this one. REQUIRES: goes_on().
    void go_on(const DatagramTimes& end) { progress_ = previous_ = end.first; }

    /// As at first.
    void forget() { *this = TimeGuard({max_jump_, max_disorder_, confirmations_}); }

    [[nodiscard]] bool proven() const { return proven_; }
    /// Whether the source is proven, or all its datagrams agree so far.
    [[nodiscard]] bool consistent() const { return proven_ || row_ == unproven_; }
    /// Ticks; 0 until proven.
    [[nodiscard]] std::uint64_t progress() const { return progress_; }
    /// Datagrams in a row that agree on a time that is not proven.
    [[nodiscard]] std::uint32_t row() const { return row_; }
    /// Whether the source is proven, and its latest datagram was a jump; or it fails to be proven.
    [[nodiscard]] bool jumping() const { return row_ > 0 && (proven_ || unproven_ > 2 * confirmations_); }
    [[nodiscard]] bool within(std::uint64_t a, std::uint64_t b) const {
        return time_between(a, b) <= max_jump_;
    }

  private:
    [[nodiscard]] std::uint64_t candidate(const DatagramTimes& d, std::uint64_t low) const {
        return d.frames > 1 ? low : std::min(low, previous_);
    }
    Step follow(const DatagramTimes& d, std::uint64_t believed) {
        const std::uint64_t low = std::min(d.first, d.last);
        const std::uint64_t other = believed == d.last ? d.first : d.last;
        const std::uint64_t newest = within(other, believed) ? std::max(other, believed) : believed;
        row_ = 0;
        if (add_or_max(newest, max_disorder_) < progress_) {
            const std::uint64_t step = behind_ == 0 ? newest : std::min(previous_, newest);
            previous_ = newest;
            if (++behind_ < confirmations_) return Step::followed;
            behind_ = 0;
            progress_ = step;
            return Step::stepped_back;
        }
        behind_ = 0;
        progress_ = std::max(progress_, candidate(d, low));
        previous_ = low;
        return Step::followed;
    }
    Step elsewhere(const DatagramTimes& d, std::uint64_t& believed);

    std::uint64_t max_jump_;
    std::uint64_t max_disorder_;
    std::uint32_t confirmations_;
    bool proven_ = false;
    std::uint64_t progress_ = 0;
    std::uint64_t previous_ = 0;      ///< smaller time of the previous datagram
    std::uint32_t behind_ = 0;        ///< datagrams in a row that suggest a step back
    std::uint32_t row_ = 0;           ///< datagrams in a row that agree on another time
    std::uint64_t row_time_ = 0;      ///< time of the latest of them
    std::uint64_t row_progress_ = 0;  ///< the progress if the clock moves there
    std::uint32_t unproven_ = 0;      ///< datagrams before the source is proven
};

}  // namespace petacq::daemon
