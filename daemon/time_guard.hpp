// Where one source stands in detector time, robust against wild timestamps.
//
// Of each datagram only the times of the first and the last frame are known. Its candidate is the smaller of
// the two; of a datagram with a single frame, the smaller of its time and the candidate before. Progress is
// the largest candidate so far, so that no single wild frame, up or down, moves it. A datagram belongs where
// the source stands when its last or its first frame lies within max_jump of the progress. One that does not
// is a jump: rejected, until `confirmations` such datagrams in a row, each within max_jump of the one before,
// agree on another time; the last of them re-anchors the source there.
//
// The first datagram has nothing to be compared with. It is taken where it stands; but a single frame, or two
// ends more than max_jump apart, may be wild, and then the progress stays 0 until a second one agrees.
//
// Limits: two frames that are wild in the same datagram, both ahead by less than max_jump, do move the
// progress; a source whose datagrams are more than max_jump apart looks like one that jumps.
//
// No thread-safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace petacq::daemon {

/// The times that are known of a datagram with frames, in ticks.
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
        placed,      ///< the first of the source, or back where the others are
        reanchored,  ///< a jump was confirmed
        rejected,    ///< a jump
    };

    /// Ticks; at least 1 confirmation.
    TimeGuard(std::uint64_t max_jump, std::uint32_t confirmations)
        : max_jump_(max_jump), confirmations_(std::max(confirmations, 1U)) {}

    /// The common case: takes a datagram that belongs where the source stands. False, and nothing changed,
    /// when it does not. `reference` is set to the frame time that shows it.
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

    /// What follow() did not take. `others` is the time that other sources agree on, if any: a datagram
    /// within max_jump of it needs no confirmation. `reference` is set unless the outcome is rejected.
    Outcome place(const DatagramTimes& d, std::optional<std::uint64_t> others, std::uint64_t& reference);

    /// Forgets where the source stood: the next datagram is its first.
    void forget();

    [[nodiscard]] bool anchored() const { return anchored_; }
    /// The progress is known: the source has a say in what the time is.
    [[nodiscard]] bool settled() const { return anchored_ && !tentative_; }
    /// Ticks; 0 until settled.
    [[nodiscard]] std::uint64_t progress() const { return tentative_ ? 0 : anchor_; }
    /// Its latest datagram was a jump that is not confirmed.
    [[nodiscard]] bool jumping() const { return row_ > 0; }
    [[nodiscard]] bool within(std::uint64_t a, std::uint64_t b) const {
        return time_between(a, b) <= max_jump_;
    }

  private:
    void anchor(const DatagramTimes& d, std::uint64_t centre);

    std::uint64_t max_jump_;
    std::uint32_t confirmations_;
    std::uint32_t row_ = 0;       ///< jumps in a row that agree
    std::uint64_t row_time_ = 0;  ///< of the latest of them
    std::uint64_t anchor_ = 0;    ///< the progress, or what may become it
    std::uint64_t previous_ = 0;  ///< smaller end of the datagram before
    bool anchored_ = false;
    bool tentative_ = false;
};

}  // namespace petacq::daemon
