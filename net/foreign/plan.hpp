// A layout, worked out for the loop that translates frames: every field is a load, a shift and a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "config/layout/layout.hpp"
#include "net/wire.hpp"

namespace petacq::net {

/// Most frames of a foreign datagram: it is translated into one datagram, which is a UDP payload in captures.
inline constexpr std::size_t max_foreign_frames = (max_datagram_bytes - header_bytes) / frame_bytes;
/// Bytes behind a foreign datagram that may be read (but do not matter): a field is loaded as eight bytes.
inline constexpr std::size_t foreign_slack_bytes = 8;

template <config::ByteOrder Order>
std::uint64_t load_word(const std::byte* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return Order == config::ByteOrder::big ? swap_bytes(word) : word;
}

/// A field: eight bytes from `offset`, in the byte order of the section; then `shift` right, and `mask`.
struct FieldPlan {
    std::uint32_t offset = 0;
    std::uint32_t shift = 0;
    std::uint64_t mask = 0;

    template <config::ByteOrder Order>
    [[nodiscard]] std::uint64_t of(const std::byte* section) const {
        return in(load_word<Order>(section + offset));
    }
    [[nodiscard]] std::uint64_t in(std::uint64_t word) const { return word >> shift & mask; }
    [[nodiscard]] std::uint64_t of(const std::byte* section, config::ByteOrder order) const {
        return order == config::ByteOrder::big ? of<config::ByteOrder::big>(section)
                                               : of<config::ByteOrder::little>(section);
    }
};

struct MarkerPlan {
    FieldPlan field;
    std::uint64_t value = 0;
};

/// One field of several parts: each adds its bits below those of the parts before.
struct JoinedPlan {
    struct FieldPart {
        FieldPlan field;
        std::uint32_t bits = 0;
    };
    std::vector<FieldPart> parts;
    std::uint64_t flip = 0;  ///< bits that are inverted

    template <config::ByteOrder Order>
    [[nodiscard]] std::uint64_t of(const std::byte* section) const {
        std::uint64_t value = parts.front().field.of<Order>(section);
        for (std::size_t i = 1; i < parts.size(); ++i)
            value = value << parts[i].bits | parts[i].field.of<Order>(section);
        return value ^ flip;
    }
    [[nodiscard]] std::uint64_t of(const std::byte* section, config::ByteOrder order) const {
        return order == config::ByteOrder::big ? of<config::ByteOrder::big>(section)
                                               : of<config::ByteOrder::little>(section);
    }
};

/// A field whose value, or that of several fields of a frame, is looked up: what it adds to the frame.
struct LookupPlan {
    FieldPlan field;
    std::vector<FrameWords> table;  ///< for each value of the field
};

/// The fields that one section (header of a datagram, header of a block, or frame) gives to a frame of
/// petacqd.
struct SectionPlan {
    std::size_t bytes = 0;
    config::ByteOrder byte_order = config::ByteOrder::big;
    std::vector<MarkerPlan> markers;
    FieldPlan bdm, du, x, y, energy;  ///< those with mask 0 are not here
    std::vector<LookupPlan> lookups;

    [[nodiscard]] bool markers_match(const std::byte* section) const {
        for (const MarkerPlan& m : markers) {
            if (m.field.of(section, byte_order) != m.value) return false;
        }
        return true;
    }
};

/// Counts of a foreign time counter to ticks: numerator / denominator, rounded down.
struct ScalePlan {
    std::uint64_t numerator = 1;
    std::uint64_t denominator = 1;
    // n / denominator = n * reciprocal / 2^(64 + shift) for n below 2^63: Granlund and Montgomery, "Division
    // by invariant integers using multiplication" (1994), theorem 4.2.
    std::uint64_t reciprocal = 0;
    std::uint32_t shift = 0;
};

/// Frames that are told apart by a field, and what a tag holds.
struct KindsPlan {
    using Kind = config::LayoutKinds::Kind;

    FieldPlan field;
    std::vector<Kind> of;  ///< for each value of the field
    LookupPlan channel, kind;
    JoinedPlan value;
    JoinedPlan counter;
};

/// The fields in the header of a datagram or block that report lost data.
struct LossPlan {
    bool has_flag = false;
    bool has_number = false;
    FieldPlan flag;
    FieldPlan number;
};

struct TimePlan {
    JoinedPlan counter;
    JoinedPlan upper;
    config::RollOver roll_over = config::RollOver::none;
    config::LayoutSection upper_in = config::LayoutSection::datagram;
    std::uint64_t period = 0;  ///< counts; 0: 2^64
    ScalePlan scale;
    double counts_per_ns = 0;  ///< of host time
};

struct LayoutPlan {
    /// `frames`: the frames that petacqd expects. Throws config::Error with the path of the key if the
    /// counter rolls over too often to be counted.
    LayoutPlan(const config::Layout& layout, const FrameCheck& frames, double tick_ps);

    /// In the time of a table's entry, which is otherwise 0: there is no such address. Used where every
    /// address that a frame can hold is valid; the marker of the frame is then made wrong.
    static constexpr std::uint64_t no_address_time = 1;
    static constexpr std::uint64_t no_address_high = 0x0100;  ///< the same in FrameWords::high

    SectionPlan datagram, block, frame;
    std::size_t trailer_bytes = 0;
    bool has_blocks = false;
    bool sequenced = false;
    bool has_length = false;
    bool has_end_of_stream = false;
    FrameVersion version;  ///< of the frames of petacqd
    FieldPlan length, source, sequence, frames;
    MarkerPlan end_of_stream;
    std::uint32_t sequence_bits = 64;
    TimePlan time;
    LossPlan datagram_loss, block_loss;
    std::optional<KindsPlan> kinds;  ///< nothing: all frames are hits
    FrameWords tag{};                ///< a tag of petacqd that is 0 but for its markers
    FrameWords constants{};          ///< markers and constant fields of a frame of petacqd
    FrameWords bad_marker{};         ///< a frame of petacqd with a wrong marker
};

}  // namespace petacq::net
