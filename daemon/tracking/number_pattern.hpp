// Whether the sequence numbers of a source say anything: a number that does not grow by one with each
// datagram hides loss instead of showing it.
//
// Only datagrams that do not simply follow the one before are looked at (SequenceTracker takes all others as
// they are), in blocks of `block`. The numbers of a whole block have one of the patterns below; or it is a
// healthy source with loss, whose steps are of different sizes. One stray number, a restart, datagrams out of
// order and copies are none. Nothing is done about a pattern: the numbers are used as they are.
//
// While there is a pattern, nobody knows what was lost. It ends after `healthy` datagrams that are in order,
// and loss is counted from there on. Two boards with one id are recognised by their addresses; since many
// datagrams of one may come before the next of the other, theirs ends after `healthy_turns`.
//
// Limits. Where exactly every second datagram is lost, the numbers look like those of a board that counts by
// two. Two boards of which more than about 180 datagrams come at a time are not recognised.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "daemon/tracking/sequence_tracker.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

enum class NumberFault : std::uint8_t {
    none,
    stands_still,
    little_endian,  ///< the bytes of the number, or of its lower half, are in reverse order
    counts_frames,  ///< grows by the number of frames
    steps,          ///< grows by a multiple of a constant
    counts_down,
    no_order,
    two_boards,  ///< two senders, each with numbers of its own
};
/// The word in status documents: "stands_still".
const char* name_of(NumberFault fault);

/// What is known of it.
struct NumberPattern {
    NumberFault fault = NumberFault::none;
    std::uint64_t number = 0;                ///< stands_still: at which; steps: by how much
    std::array<net::Endpoint, 2> senders{};  ///< two_boards

    explicit operator bool() const { return fault != NumberFault::none; }
    /// "its sequence number stands still at 0"
    [[nodiscard]] std::string text() const;
};

/// An accepted datagram.
struct NumberedDatagram {
    std::uint64_t number = 0;
    std::uint32_t frames = 0;
    net::Endpoint sender;
    net::Endpoint sender_before;  ///< of the datagram of the source before it
    SequenceVerdict verdict = SequenceVerdict::in_order;
};

class NumberWatch {
  public:
    static constexpr std::uint32_t block = 64;
    static constexpr std::uint64_t healthy = 128;
    static constexpr std::uint64_t healthy_turns = 1024;

    /// A datagram that is not a copy and does not simply follow the one before. `numbers` has counted it.
    /// Returns by how much lost() has grown.
    std::int64_t observe(const NumberedDatagram& datagram, const SequenceTracker& numbers);

    /// As of the datagrams that `numbers` has counted.
    [[nodiscard]] bool meaningless(const SequenceTracker& numbers) const {
        return pattern_ && numbers.counts().accepted - latest_ < ends_after();
    }
    [[nodiscard]] NumberPattern pattern(const SequenceTracker& numbers) const {
        return meaningless(numbers) ? pattern_ : NumberPattern{};
    }
    /// Also one that is over.
    [[nodiscard]] const NumberPattern& latest_pattern() const { return latest_pattern_; }
    /// Datagrams missing, without those that only the pattern made look so.
    [[nodiscard]] std::uint64_t lost(const SequenceTracker& numbers) const;
    /// Datagrams accepted while the numbers said nothing, the first block included. Only grows.
    [[nodiscard]] std::uint64_t unnumbered(const SequenceTracker& numbers) const;

  private:
    static constexpr std::uint32_t few = 16;  ///< steps that are enough where chance makes none of them
    static constexpr std::uint32_t collisions_of_block = 32;
    /// So many collisions within this number of datagrams are no chance: a turn of a board has up to three.
    static constexpr std::uint64_t datagrams_of_collisions = 4096;

    /// Datagrams in order that end the pattern.
    [[nodiscard]] std::uint64_t ends_after() const {
        return pattern_.fault == NumberFault::two_boards ? healthy_turns : healthy;
    }

    void judge(const NumberedDatagram& datagram, const SequenceTracker& numbers);
    void end_pattern(const SequenceTracker& numbers);
    void begin_block(const SequenceTracker& numbers);
    void add_step(const NumberedDatagram& datagram);
    void add_collision(const NumberedDatagram& datagram, const SequenceTracker& numbers);
    [[nodiscard]] NumberPattern of_block(const NumberedDatagram& latest) const;
    void take(const NumberPattern& found, const SequenceTracker& numbers);

    NumberPattern pattern_;
    NumberPattern latest_pattern_;
    std::uint64_t latest_ = 0;      ///< accepted when the pattern was seen last
    std::uint64_t from_ = 0;        ///< accepted before it
    std::uint64_t known_lost_ = 0;  ///< before it
    std::uint64_t never_lost_ = 0;  ///< numbers of earlier patterns that count as missing
    std::uint64_t unnumbered_ = 0;  ///< in earlier patterns
    std::uint64_t missing_ = 0;     ///< numbers missing after the latest observe()
    std::uint64_t told_lost_ = 0;   ///< lost() after the latest observe()

    // The block.
    std::uint64_t previous_ = 0;  ///< number of its latest datagram
    std::uint32_t previous_frames_ = 0;
    std::uint32_t steps_ = 0;
    std::uint64_t accepted_ = 0;    ///< as of its latest datagram
    std::uint64_t block_from_ = 0;  ///< accepted before it
    std::uint64_t block_lost_ = 0;
    std::uint64_t divisor_ = 0;  ///< greatest common one of the steps; 0: all steps are 0
    std::uint32_t between_ = 0;  ///< datagrams that simply followed
    std::uint32_t swapped_ = 0, swapped_half_ = 0, frames_ = 0, frames_before_ = 0, down_ = 0, strays_ = 0;

    std::uint32_t collisions_ = 0;       ///< strays and restarts
    std::uint32_t from_others_ = 0;      ///< of these, sent by another than the datagram before
    std::uint64_t collisions_from_ = 0;  ///< accepted before them
    std::uint64_t collisions_lost_ = 0;
};

}  // namespace petacq::daemon
