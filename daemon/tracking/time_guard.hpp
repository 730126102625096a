// Progress of one source in detector time, robust against wild timestamps.
//
// Only the times of the first and the last frame of a datagram are known. The smaller of the two is its
// candidate; for a datagram with a single frame, the smaller of its time and the previous candidate. Progress
// is the largest candidate so far, so that no single wild frame, early or late, moves it. A datagram follows
// the source if its last or its first frame lies within max_jump of the progress. Otherwise it is a jump and
// is rejected, until `confirmations` such datagrams in a row, each within max_jump of the previous one, agree
// on another time. The last of them moves the source there.
//
// The first datagram cannot be compared with anything, and is accepted. But if it has a single frame, or its
// two times are more than max_jump apart, one of them may be wild: the progress then stays 0 until a second
// datagram agrees.
//
// Limits: two wild frames in the same datagram, both ahead by less than max_jump, move the progress. A source
// whose datagrams are more than max_jump apart looks like one that jumps.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace petacq::daemon {

/// The known times of a datagram with frames, in ticks.
struct DatagramTimes {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t frames = 0;  ///< at least 1
};

inline std::uint64_t time_between(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : b - a;
}

class TimeGuard {
  public:
    enum class Outcome : std::uint8_t {
        placed,      ///< the first datagram of the source, or one that agrees with the other sources
        reanchored,  ///< a jump was confirmed
        rejected,    ///< a jump
    };

    /// Ticks; at least 1 confirmation.
    TimeGuard(std::uint64_t max_jump, std::uint32_t confirmations)
        : max_jump_(max_jump), confirmations_(std::max(confirmations, 1U)) {}

    /// The common case: accepts a datagram that follows the source, and sets `reference` to the frame time
    /// that shows it. Otherwise returns false and changes nothing.
    bool follow(const DatagramTimes& d, std::uint64_t& reference) {
        if (!anchored_) return false;
        if (within(d.last, anchor_)) {
            reference = d.last;
        } else if (within(d.first, anchor_)) {
            reference = d.first;
        } else {
            return false;
        }
        const std::uint64_t low = std::min(d.first, d.last);
        const std::uint64_t candidate = d.frames > 1 ? low : std::min(low, previous_);
        previous_ = low;
        anchor_ = tentative_ ? std::min(anchor_, candidate) : std::max(anchor_, candidate);
        tentative_ = false;
        row_ = 0;
        return true;
    }

    /// For a datagram that follow() did not accept. `others` is the time on which the other sources agree, if
    /// there is one: a datagram within max_jump of it needs no confirmation. Sets `reference` unless the
    /// outcome is rejected.
    Outcome place(const DatagramTimes& d, std::optional<std::uint64_t> others, std::uint64_t& reference);

    /// Forgets the progress: the next datagram counts as the first.
    void forget();

    [[nodiscard]] bool anchored() const { return anchored_; }
    /// Whether the progress is known; the source then has a vote on the reference.
    [[nodiscard]] bool settled() const { return anchored_ && !tentative_; }
    /// Ticks; 0 until settled.
    [[nodiscard]] std::uint64_t progress() const { return tentative_ ? 0 : anchor_; }
    /// Whether the latest datagram was a jump that is not confirmed.
    [[nodiscard]] bool jumping() const { return row_ > 0; }
    [[nodiscard]] bool within(std::uint64_t a, std::uint64_t b) const {
        return time_between(a, b) <= max_jump_;
    }

  private:
    void anchor(const DatagramTimes& d, std::uint64_t centre);

    std::uint64_t max_jump_;
    std::uint32_t confirmations_;
    std::uint32_t row_ = 0;       ///< number of jumps in a row that agree
    std::uint64_t row_time_ = 0;  ///< time of the latest of them
    std::uint64_t anchor_ = 0;    ///< the progress, or its tentative value
    std::uint64_t previous_ = 0;  ///< smaller time of the previous datagram
    bool anchored_ = false;
    bool tentative_ = false;
};

}  // namespace petacq::daemon
