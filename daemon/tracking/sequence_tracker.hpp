// Sequence accounting of one source: counts lost, duplicate and reordered datagrams, and detects restarts of
// the source.
//
// An epoch is a range of sequence numbers without a restart. It spans [base, highest], and `unique` of these
// numbers have arrived:
//     lost = sum over epochs of (highest - base + 1) - unique
// A late datagram thus reduces the loss by itself, and the loss is never negative. Numbers are compared
// modulo 2^64, so the first number may have any value, and wrap-around needs no special case. A number is
// classified by its distance d from the highest number of the epoch:
//
//   0 < d <= max_gap       in order; the d - 1 numbers in between are lost until they arrive
//   -window < d <= 0       not seen before: reordered (a number below the base becomes the new base);
//                          seen with the same content: duplicate; seen with other content: stray
//   otherwise              stray
//
// A stray datagram is accepted: its frames are used (the time guard and the watermark protect the data), but
// it belongs to no epoch. `confirmations` strays in a row, each within `near` numbers of the previous one,
// are a restart: they start the next epoch, and the loss of the old epoch stays. A datagram in order, or a
// reordered one, ends the row. After an end of stream no confirmation is needed: the first stray, or the
// first number more than a window ahead, starts the next stream.
//
// Limits. A datagram that is late by more than a window cannot be distinguished from a duplicate: it is stray
// and stays counted as lost, and its frames are usually late. A single wild number up to max_gap ahead counts
// as a loss and then as a restart. Strays that confirm a restart stay counted as stray. A datagram of an old
// epoch that arrives after a restart is stray, and its loss stays.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace petacq::daemon {

enum class SequenceVerdict : std::uint8_t {
    in_order,    ///< the highest number so far, with or without a gap before it
    reordered,   ///< fills a gap, or lies just below the first number
    stray,       ///< far from the epoch
    restart,     ///< the stray that confirms a restart
    new_stream,  ///< the first datagram after an end of stream
    duplicate,   ///< must be discarded; all other verdicts accept the datagram
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

    /// Accounts for one datagram. `content` is any hash of its content (0 counts as 1): a known number with
    /// other content is not a duplicate. Allocates on the first call only.
    SequenceVerdict observe(std::uint64_t sequence, std::uint16_t content = 1, bool end_of_stream = false);

    /// Numbers missing at present, in all epochs.
    [[nodiscard]] std::uint64_t lost() const { return lost_before_ + span() - unique_; }
    /// Numbers missing in the window: they may still arrive.
    [[nodiscard]] std::uint64_t gaps() const { return gaps_; }
    /// Whether the datagram with the highest number had the end-of-stream flag.
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
    /// [sequence % window]: content of the datagram with that number; 0: not arrived.
    std::vector<std::uint16_t> seen_;
};

}  // namespace petacq::daemon
