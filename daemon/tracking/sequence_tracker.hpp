// Sequence accounting of one source: recognises copies, counts missing datagrams, and detects restarts of the
// numbers. docs/design/time.md has the rules and their limits.
//
// An epoch is a range of numbers without a restart (sequence_epoch.hpp). Numbers are compared modulo 2^64. A
// copy must not be used; everything else may be.
//
// Loss of a run. mark() notes which numbers are missing when the run starts. `recovered` counts those of them
// that arrive after it. From one mark to any later moment, the growth of lost() plus that of `recovered` is
// the number of datagrams whose absence was noticed since the mark and that have not arrived.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "daemon/tracking/sequence_epoch.hpp"

namespace petacq::daemon {

enum class SequenceVerdict : std::uint8_t {
    in_order,    ///< the highest number so far, with or without a gap before it
    reordered,   ///< fills a gap, or lies just below the first number
    stray,       ///< far from the epoch
    restart,     ///< the stray that confirms a restart
    new_stream,  ///< the first datagram after an end of stream
    duplicate,   ///< a copy
    repeated,    ///< a copy from an earlier stream
};
/// Copies must be discarded; all others are accepted.
inline bool is_copy(SequenceVerdict verdict) {
    return verdict == SequenceVerdict::duplicate || verdict == SequenceVerdict::repeated;
}

/// They only grow.
struct SequenceCounts {
    std::uint64_t accepted = 0;
    std::uint64_t duplicate = 0;
    std::uint64_t repeated = 0;
    std::uint64_t reordered = 0;
    std::uint64_t restarted = 0;    ///< epochs after the first
    std::uint64_t new_streams = 0;  ///< of these, after an end of stream
    std::uint64_t stray = 0;
    std::uint64_t recovered = 0;  ///< datagrams missing at the latest mark() that arrived after it
};

class SequenceTracker {
  public:
    static constexpr std::uint64_t window = SequenceEpoch::window;  ///< numbers remembered of an epoch
    static constexpr std::uint64_t near = 64;                       ///< numbers that need no confirmation
    static constexpr std::uint32_t confirmations = 3;
    static constexpr std::uint64_t reach = 4096;          ///< between strays that agree
    static constexpr std::uint64_t max_gap = 1ULL << 24;  ///< longest jump ahead that is a loss
    static_assert(reach * confirmations < window, "a confirmed row must fit the window");

    /// Accounts for one datagram, in constant time. `content` is any hash of its content. Allocates on the
    /// first two epochs only.
    SequenceVerdict observe(std::uint64_t sequence, std::uint32_t content = 1, bool end_of_stream = false) {
        const bool next = sequence == current_.highest() + 1 && !current_.empty();
        if (!next || current_.arrived(sequence) || previous_.arrived(sequence))
            return observe_any(sequence, content, end_of_stream);
        // The usual case.
        remember(sequence, content);
        ++counts_.accepted;
        current_.advance();
        ended_ = end_of_stream;
        again_ = false;
        abandon_row();
        return SequenceVerdict::in_order;
    }

    /// The most common case of observe() for `count` datagrams with consecutive numbers: they follow the
    /// highest number, and none of them has arrived before.
    [[nodiscard]] bool goes_on(std::uint64_t sequence, std::uint32_t count) const {
        return !current_.empty() && sequence == current_.highest() + 1 &&
               !current_.any_arrived(sequence, count) && !previous_.any_arrived(sequence, count);
    }
    /// Remembers the content of one of them, before go_on().
    void remember(std::uint64_t sequence, std::uint32_t content) {
        SequenceMark& slot = slots_[sequence % window];
        slot = {fingerprint(sequence, content), slot.latest};
    }
    /// Accounts for them. REQUIRES: goes_on(); all contents are remembered; none ends the stream.
    void go_on(std::uint32_t count) {
        current_.advance_by(count);
        counts_.accepted += count;
        ended_ = again_ = false;
        abandon_row();
    }

    /// A run starts. What is missing now was lost before it.
    void mark();

    /// Numbers missing at present, in all epochs.
    [[nodiscard]] std::uint64_t lost() const {
        return lost_before_ + previous_.missing() + current_.missing();
    }
    /// Numbers of the present epoch missing in the window: they may still arrive.
    [[nodiscard]] std::uint64_t gaps() const { return current_.missing_in_window(); }
    /// Whether the datagram with the highest number had the end-of-stream flag.
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] const SequenceCounts& counts() const { return counts_; }

  private:
    struct Stray {
        std::uint64_t sequence = 0;
        bool end_of_stream = false;
    };
    /// Fingerprints of the latest two datagrams whose numbers share a slot; 0: none.
    struct SequenceMark {
        std::uint32_t latest = 0;
        std::uint32_t older = 0;
    };

    struct Free {
        void operator()(SequenceMark* slots) const {
            std::free(slots);
        }  // NOLINT(cppcoreguidelines-no-malloc)
    };

    /// Never 0.
    static std::uint32_t fingerprint(std::uint64_t sequence, std::uint32_t content) {
        std::uint64_t v = (sequence + (std::uint64_t{content} << 32 | content)) * 0x9E3779B97F4A7C15ULL;
        v = (v ^ (v >> 32)) * 0xBF58476D1CE4E5B9ULL;
        return static_cast<std::uint32_t>(v >> 32) | 1U;
    }
    SequenceVerdict observe_any(std::uint64_t sequence, std::uint32_t content, bool end_of_stream);
    [[nodiscard]] bool precedes(std::uint64_t sequence) const;
    SequenceVerdict observe_copy(std::uint64_t sequence, bool older);
    SequenceVerdict observe_stray(const Stray& datagram);
    /// Its datagrams confirm nothing.
    void abandon_row() {
        counts_.stray += row_length_ + ahead_;
        row_length_ = ahead_ = 0;
    }
    void start_epoch(std::uint64_t base);
    void continue_with_row(std::uint64_t top);

    SequenceEpoch current_;
    SequenceEpoch previous_;
    std::uint64_t lost_before_ = 0;  ///< in the epochs before these
    bool ended_ = false;
    bool again_ = false;  ///< the ended stream is being sent again
    std::uint32_t row_length_ = 0;
    /// Strays before the row. If the row continues the epoch, they lie between two losses.
    std::uint32_t ahead_ = 0;
    std::array<Stray, confirmations> row_{};
    SequenceCounts counts_;
    /// [sequence % window]. Zeroed pages of the system: a source that sends little takes little memory.
    std::unique_ptr<SequenceMark[], Free> slots_;
};

}  // namespace petacq::daemon
