// Sequence accounting of one source: what was lost, duplicated, reordered, and when the source started over.
//
// An epoch is a stretch of numbers without a restart. It spans [base, highest]; of these `unique` have come:
//     lost = sum over epochs of (highest - base + 1) - unique
// so a late datagram takes its loss back by construction, and the figure is never negative. Numbers are
// compared modulo 2^64, so any first value and the wrap-around are ordinary. How a number is taken, by its
// distance d from the highest of the epoch:
//
//   0 < d <= max_gap       in order; the d - 1 numbers between are lost until they come
//   -window < d <= 0       not seen yet: reordered (below the base it moves the base down);
//                          seen with the same content: duplicate; seen with other content: stray
//   all else               stray
//
// A stray datagram is accepted: its frames are used (the time guard and the watermark protect the data), but
// it belongs to no epoch. `confirmations` strays in a row, each within `near` numbers of the one before, are
// a restart: they begin the next epoch, and the loss of the old one is kept. A datagram taken in order or
// reordered breaks the row. Right after an end of stream no confirmation is needed: the first stray, or the
// first number more than a window ahead, is the beginning of the next stream.
//
// Limits. A datagram more than a window late cannot be told from a duplicate of that age: it is stray, stays
// counted as lost, and its frames will as a rule be late. One wild number up to max_gap ahead counts as a
// loss and then as a restart. The strays that confirmed a restart stay counted as stray. A datagram of an old
// epoch that comes after a restart is stray and its loss stays.
//
// No thread-safety: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace petacq::daemon {

enum class SequenceVerdict : std::uint8_t {
    in_order,    ///< the highest so far, a gap before it or not
    reordered,   ///< fills a gap, or lies just below the first
    stray,       ///< far off
    restart,     ///< the stray that confirmed a restart
    new_stream,  ///< the first of a stream that follows an end of stream
    duplicate,   ///< to be discarded; every other verdict is accepted
};

struct SequenceCounts {
    std::uint64_t accepted = 0;
    std::uint64_t duplicate = 0;
    std::uint64_t reordered = 0;
    std::uint64_t restarted = 0;  ///< epochs after the first
    std::uint64_t stray = 0;
};

class SequenceTracker {
  public:
    static constexpr std::uint64_t window = 16384;        ///< numbers remembered; a power of two
    static constexpr std::uint64_t max_gap = 1ULL << 24;  ///< longest jump ahead that counts as loss
    static constexpr std::uint32_t confirmations = 3;
    static constexpr std::uint64_t near = 1024;
    static_assert(near * confirmations < window, "a confirmed row must fit the window");

    /// Accounts for one datagram. `content` stands for what is in it (any hash; 0 counts as 1): a number seen
    /// before with other content is not a duplicate. Allocates on the first call only.
    SequenceVerdict observe(std::uint64_t sequence, std::uint16_t content = 1, bool end_of_stream = false);

    /// Numbers missing at the moment, of all epochs.
    [[nodiscard]] std::uint64_t lost() const { return lost_before_ + span() - unique_; }
    /// Numbers missing in the window: those that may still be on their way.
    [[nodiscard]] std::uint64_t gaps() const { return gaps_; }
    /// The highest number of the epoch came with the end-of-stream flag.
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] const SequenceCounts& counts() const { return counts_; }

  private:
    struct Stray {
        std::uint64_t sequence = 0;
        std::uint16_t content = 0;
        bool end_of_stream = false;
    };

    [[nodiscard]] std::uint64_t span() const { return unique_ == 0 ? 0 : highest_ - base_ + 1; }
    std::uint16_t& slot(std::uint64_t sequence) { return seen_[sequence % window]; }
    void vacate(std::uint64_t sequence);
    void begin_epoch(const Stray& first);
    void advance(const Stray& datagram);
    void fill(const Stray& datagram);
    SequenceVerdict observe_stray(const Stray& datagram);

    std::uint64_t base_ = 0;
    std::uint64_t highest_ = 0;
    std::uint64_t unique_ = 0;  ///< 0: no epoch yet
    std::uint64_t gaps_ = 0;
    std::uint64_t lost_before_ = 0;  ///< in earlier epochs
    bool ended_ = false;
    std::uint32_t row_length_ = 0;
    std::array<Stray, confirmations> row_{};
    SequenceCounts counts_;
    /// [sequence % window]: content of that number, 0 while it has not come.
    std::vector<std::uint16_t> seen_;
};

}  // namespace petacq::daemon
