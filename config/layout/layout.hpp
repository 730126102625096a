// The declared layout of a foreign frame format: one JSON file. config/layout/layout.schema.json declares and
// describes every key; docs/reference/layout.md has examples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/base/words.hpp"

namespace petacq::config {

/// Where a word stands.
enum class LayoutSection : std::uint8_t { datagram, block, frame };
/// How the periods of a time counter are told apart.
enum class RollOver : std::uint8_t { none, upper, near, count };
enum class ByteOrder : std::uint8_t { big, little };

template <>
inline constexpr Words<3> words<LayoutSection>{"section", {"datagram", "block", "frame"}};
template <>
inline constexpr Words<4> words<RollOver>{"roll-over", {"none", "upper", "near", "count"}};
template <>
inline constexpr Words<2> words<ByteOrder>{"byte order", {"big", "little"}};

/// Bits of a word of 1 to 8 bytes.
struct LayoutField {
    std::uint32_t offset = 0;  ///< of the word, bytes
    std::uint32_t bytes = 1;   ///< of the word
    std::uint32_t low_bit = 0;
    std::uint32_t bits = 8;
};

/// A field of a time counter.
struct LayoutCounter : LayoutField {
    bool invert = false;  ///< the bits count down
};

struct LayoutMarker {
    LayoutField field;
    std::uint64_t value = 0;
};

/// An address or an energy: constant, or from a word by arithmetic and a table.
struct LayoutValue {
    std::optional<std::uint32_t> constant;  ///< then the rest means nothing
    LayoutSection in = LayoutSection::frame;
    LayoutField field;
    struct Bits {
        std::uint32_t low_bit = 0;  ///< in the field
        std::uint32_t bits = 1;
    };
    std::vector<Bits> pick;  ///< joined in place of the field, the most significant first; empty: none
    std::uint32_t add = 0;   ///< to the bits, modulo two to the power of their number
    std::uint32_t divide = 1;
    std::optional<std::uint32_t> modulo;
    std::vector<std::optional<std::uint32_t>> table;  ///< empty: none

    /// The value of these bits; nothing if there is none.
    [[nodiscard]] std::optional<std::uint32_t> of(std::uint64_t word) const;
    /// The value is the bits themselves.
    [[nodiscard]] bool is_plain() const {
        return pick.empty() && add == 0 && divide == 1 && !modulo && table.empty();
    }
    /// Those of the field, or those that are picked.
    [[nodiscard]] std::uint32_t bits() const;
};

struct LayoutTemperature {
    std::optional<double> constant;  ///< degrees C
    LayoutSection in = LayoutSection::frame;
    LayoutField field;
    bool is_signed = false;
    double degrees_per_count = 0;
    double degrees_at_zero = 0;

    /// Sixteenths of a degree C, within what a frame can hold.
    [[nodiscard]] std::int16_t of(std::uint64_t bits) const;
};

/// Frames of several kinds.
struct LayoutKinds {
    enum class Kind : std::uint8_t { unknown, hit, tag, ignored };

    LayoutField field;
    std::vector<Kind> of;  ///< for each value of the field
    // A tag:
    LayoutValue channel, kind;
    std::vector<LayoutField> value;      ///< the most significant first; empty: 0
    std::vector<LayoutCounter> counter;  ///< as in LayoutTime; empty: there are no tags
};

struct LayoutTime {
    std::vector<LayoutCounter> counter;  ///< the most significant first
    std::uint64_t numerator = 1;         ///< ticks in `denominator` counts
    std::uint64_t denominator = 1;
    std::uint64_t period = 0;  ///< counts; 0: 2^64
    RollOver roll_over = RollOver::none;
    std::vector<LayoutField> upper;
    LayoutSection upper_in = LayoutSection::datagram;
};

struct Layout {
    std::string name;
    /// Headers of the datagram and the block (0: there are no blocks), and the frame.
    struct Section {
        std::uint32_t bytes = 0;
        ByteOrder byte_order = ByteOrder::big;
        std::vector<LayoutMarker> markers;  ///< of a datagram or frame
        // A frame has neither of these two fields.
        std::optional<LayoutField> lost;    ///< not 0: the board lost data here
        std::optional<LayoutField> number;  ///< missing ones are lost data
    };
    Section datagram, block, frame;
    std::uint32_t trailer_bytes = 0;
    std::optional<LayoutField> length;  ///< of the datagram
    std::optional<LayoutField> source;
    std::optional<LayoutField> sequence;
    std::optional<LayoutMarker> end_of_stream;
    LayoutField frames;  ///< in a block
    LayoutValue bdm, du, x, y, energy;
    LayoutTemperature temperature;
    std::optional<LayoutKinds> kinds;  ///< nothing: all frames are hits
    LayoutTime time;
};

/// Reads and checks a layout. `max_bdm_count`: modules that the frames can name that the foreign ones are
/// translated into (config/scanner/frame_version.hpp). Throws config::Error with the key's path and the
/// expectation.
Layout load_layout(const std::filesystem::path& file, std::uint32_t max_bdm_count);
Layout layout_from_json(const nlohmann::json& document, std::uint32_t max_bdm_count);

}  // namespace petacq::config
