// The wire format: frames of both versions and the header of a sequenced datagram, as
// docs/reference/wire-format.md describes them. All functions are pure: no allocation, no state, safe from
// any thread. The frame functions are also compiled for the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "config/choices.hpp"
#include "config/scanner/frame_version.hpp"
#include "net/modules.hpp"

#ifdef __CUDACC__
#define PETACQ_HD __host__ __device__
#else
#define PETACQ_HD
#endif

namespace petacq::net {

inline constexpr std::size_t frame_bytes = 16;
inline constexpr std::size_t header_bytes = 16;
inline constexpr std::size_t max_datagram_bytes = 65507;  ///< largest UDP payload over IPv4
/// Frames of the largest datagram.
inline constexpr std::uint32_t max_datagram_frames = max_datagram_bytes / frame_bytes;
inline constexpr std::uint8_t flag_end_of_stream = 0x01;
inline constexpr std::uint8_t default_head_marker = 0xA;
inline constexpr std::uint8_t default_tail_marker = 0x5;
inline constexpr std::uint8_t default_tag_marker = 0xB;

using config::FrameVersion;
using config::Framing;

/// One hit as a detector board sends it, decoded from 16 bytes.
struct Frame {
    std::uint8_t head_marker;  ///< 0..15
    std::uint8_t du;           ///< 0..15
    std::uint16_t bdm;         ///< version 1: 0..255
    std::uint64_t time;        ///< ticks
    std::uint8_t x;
    std::uint8_t y;
    std::uint16_t energy;  ///< ADC value
    /// Sixteenths of a degree C: whole degrees * 16 + sixteenths. Version 2 has whole degrees only.
    std::int16_t temperature_16ths;
    std::uint8_t tail_marker;  ///< 0..15; version 2 has none: 0
};

PETACQ_HD inline std::uint64_t swap_bytes(std::uint64_t v) {
#ifdef __CUDA_ARCH__
    const auto low = static_cast<std::uint32_t>(v);
    const auto high = static_cast<std::uint32_t>(v >> 32);
    return (static_cast<std::uint64_t>(__byte_perm(low, 0, 0x0123)) << 32) | __byte_perm(high, 0, 0x0123);
#else
    return __builtin_bswap64(v);
#endif
}

/// A frame as two little-endian words, the form in which both back-ends load it: `low` holds bytes 0..7.
struct FrameWords {
    std::uint64_t low;
    std::uint64_t high;
};

// Fields of a frame as its words hold them, without a check. These are what differs between the versions.
template <FrameVersion version>
PETACQ_HD std::uint32_t bdm_of(FrameWords w) {
    if constexpr (version == FrameVersion::one) return static_cast<std::uint32_t>(w.low >> 8 & 0xFF);
    return static_cast<std::uint32_t>((w.low & 0xFF) << 8 | (w.low >> 8 & 0xFF));
}
template <FrameVersion version>
PETACQ_HD std::uint32_t du_of(FrameWords w) {
    return static_cast<std::uint32_t>((version == FrameVersion::one ? w.low : w.high >> 56) & 0xF);
}
/// The head marker of a hit, or the tag marker of a tag.
template <FrameVersion version>
PETACQ_HD std::uint32_t marker_of(FrameWords w) {
    return static_cast<std::uint32_t>((version == FrameVersion::one ? w.low >> 4 : w.high >> 60) & 0xF);
}
/// Whether the tail marker is right; version 2 has none.
template <FrameVersion version>
PETACQ_HD bool has_tail(FrameWords w, std::uint32_t tail_marker) {
    return version != FrameVersion::one || (w.high >> 56 & 0xF) == tail_marker;
}
template <FrameVersion version>
PETACQ_HD std::int32_t temperature_16ths_of(FrameWords w) {
    const auto whole = static_cast<std::int8_t>(static_cast<std::uint8_t>(w.high >> 48));
    return whole * 16 + (version == FrameVersion::one ? static_cast<std::int32_t>(w.high >> 60) : 0);
}

/// Bytes 2..9 are the last six of the low word, then the first two of the high word.
PETACQ_HD inline std::uint64_t time_of(FrameWords w) {
    return swap_bytes((w.low >> 16) | (w.high << 48));
}
PETACQ_HD inline std::uint32_t adc_of(FrameWords w) {
    return static_cast<std::uint32_t>(((w.high >> 32) & 0xFF) << 8 | ((w.high >> 40) & 0xFF));
}
PETACQ_HD inline std::uint32_t x_of(FrameWords w) {
    return static_cast<std::uint32_t>((w.high >> 16) & 0xFF);
}
PETACQ_HD inline std::uint32_t y_of(FrameWords w) {
    return static_cast<std::uint32_t>((w.high >> 24) & 0xFF);
}

template <FrameVersion version>
Frame decode_frame(FrameWords w) {
    Frame f{};
    f.head_marker = static_cast<std::uint8_t>(marker_of<version>(w));
    f.du = static_cast<std::uint8_t>(du_of<version>(w));
    f.bdm = static_cast<std::uint16_t>(bdm_of<version>(w));
    f.time = time_of(w);
    f.x = static_cast<std::uint8_t>(x_of(w));
    f.y = static_cast<std::uint8_t>(y_of(w));
    f.energy = static_cast<std::uint16_t>(adc_of(w));
    f.temperature_16ths = static_cast<std::int16_t>(temperature_16ths_of<version>(w));
    f.tail_marker = static_cast<std::uint8_t>(version == FrameVersion::one ? w.high >> 56 & 0xF : 0);
    return f;
}
inline Frame decode_frame(FrameWords w, FrameVersion version) {
    return version == FrameVersion::one ? decode_frame<FrameVersion::one>(w)
                                        : decode_frame<FrameVersion::two>(w);
}

inline FrameWords load_frame(const std::byte* p) {
    FrameWords w;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    std::memcpy(&w, p, sizeof w);
    return w;
}

inline Frame decode_frame(const std::byte* p, FrameVersion version) {
    return decode_frame(load_frame(p), version);
}

/// A frame that is no hit but a mark in time, decoded from 16 bytes. Its time lies where that of a hit does.
struct TagFrame {
    std::uint8_t tag_marker = default_tag_marker;  ///< 0..15, in place of the head marker
    std::uint8_t channel = 0;                      ///< 0..15
    std::uint8_t kind = 0;
    std::uint64_t time = 0;  ///< ticks
    std::uint32_t value = 0;
    std::uint8_t tail_marker = default_tail_marker;  ///< 0..15; version 2 has none: 0
};

inline TagFrame decode_tag(FrameWords w, FrameVersion version) {
    const bool one = version == FrameVersion::one;
    TagFrame t;
    t.tag_marker =
        static_cast<std::uint8_t>(one ? marker_of<FrameVersion::one>(w) : marker_of<FrameVersion::two>(w));
    t.channel = static_cast<std::uint8_t>(w.low & 0xF);
    t.kind = static_cast<std::uint8_t>(w.low >> 8);
    t.time = time_of(w);
    t.value = __builtin_bswap32(static_cast<std::uint32_t>(w.high >> 16));
    t.tail_marker = static_cast<std::uint8_t>(one ? w.high >> 56 & 0xF : 0);
    return t;
}

inline TagFrame decode_tag(const std::byte* p, FrameVersion version) {
    return decode_tag(load_frame(p), version);
}

/// The time field alone.
inline std::uint64_t frame_time(const std::byte* p) {
    std::uint64_t v = 0;
    std::memcpy(&v, p + 2, sizeof v);
    return swap_bytes(v);
}

/// The temperature alone, in sixteenths of a degree C.
inline std::int16_t frame_temperature(const std::byte* p, FrameVersion version) {
    const auto whole = static_cast<std::int8_t>(std::to_integer<std::uint8_t>(p[14]));
    const int sixteenths = version == FrameVersion::one ? std::to_integer<std::uint8_t>(p[15]) >> 4 : 0;
    return static_cast<std::int16_t>(whole * 16 + sixteenths);
}

/// The module alone.
inline std::uint16_t frame_bdm(const std::byte* p, FrameVersion version) {
    const unsigned high = version == FrameVersion::one ? 0 : std::to_integer<unsigned>(p[0]);
    return static_cast<std::uint16_t>(high << 8 | std::to_integer<unsigned>(p[1]));
}

/// Tells the payloads of bare framing apart: of their number of frames, and of the first and the last one,
/// which have 64 bits of time each. Reads nothing else, since the rest may not be in the cache.
inline std::uint64_t fingerprint_of(const std::byte* frames, std::size_t count) {
    if (count == 0) return 0;
    const FrameWords first = load_frame(frames);
    const FrameWords last = load_frame(frames + (count - 1) * frame_bytes);
    std::uint64_t hash = count;
    for (const std::uint64_t word : {first.low, first.high, last.low, last.high}) {
        // The constant, 2^64 over the golden ratio, spreads the word over all bits.
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
    }
    return hash;
}

/// The version and the markers of a frame, and the first value beyond the range of each address.
struct FrameCheck {
    std::uint8_t head_marker = default_head_marker;
    std::uint8_t tail_marker = default_tail_marker;  ///< of version 1
    std::uint32_t bdm_count = 256;
    std::uint16_t du_count = 16;
    std::uint16_t position_size = 256;
    std::uint8_t tag_marker = default_tag_marker;
    FrameVersion version = FrameVersion::one;

    [[nodiscard]] bool valid_hit(const std::byte* frame) const {
        const FrameWords w = load_frame(frame);
        return version == FrameVersion::one ? valid_hit<FrameVersion::one>(w)
                                            : valid_hit<FrameVersion::two>(w);
    }
    /// Whether the markers are those of a hit; its address may be out of range.
    [[nodiscard]] bool has_markers(const std::byte* frame) const {
        const FrameWords w = load_frame(frame);
        return version == FrameVersion::one ? has_markers<FrameVersion::one>(w)
                                            : has_markers<FrameVersion::two>(w);
    }
    /// `modules`: those of the sender.
    [[nodiscard]] bool valid_hit(const std::byte* frame, const Modules& modules) const {
        return valid_hit(frame) && modules[frame_bdm(frame, version)];
    }
    /// Tags have no address: their markers decide.
    [[nodiscard]] bool valid_tag(const std::byte* frame) const {
        const FrameWords w = load_frame(frame);
        return tag_marker != head_marker && (version == FrameVersion::one ? valid_tag<FrameVersion::one>(w)
                                                                          : valid_tag<FrameVersion::two>(w));
    }
    [[nodiscard]] bool valid(const std::byte* frame) const { return valid_hit(frame) || valid_tag(frame); }
    [[nodiscard]] bool valid(const std::byte* frame, const Modules& modules) const {
        return valid_hit(frame, modules) || valid_tag(frame);
    }

  private:
    template <FrameVersion v>
    [[nodiscard]] bool has_markers(FrameWords w) const {
        return marker_of<v>(w) == head_marker && has_tail<v>(w, tail_marker);
    }
    template <FrameVersion v>
    [[nodiscard]] bool valid_hit(FrameWords w) const {
        return has_markers<v>(w) && bdm_of<v>(w) < bdm_count && du_of<v>(w) < du_count &&
               x_of(w) < position_size && y_of(w) < position_size;
    }
    template <FrameVersion v>
    [[nodiscard]] bool valid_tag(FrameWords w) const {
        return marker_of<v>(w) == tag_marker && has_tail<v>(w, tail_marker);
    }
};

/// Times of the first and the last valid frame, modules of the first and the last valid hit, and the
/// temperature in the last one.
struct ValidTimes {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t frames = 0;  ///< from the one to the other; 0: no frame is valid
    std::uint16_t first_bdm = 0;
    std::uint16_t last_bdm = 0;
    bool hits = false;  ///< there are valid hits
    std::int16_t temperature_16ths = 0;
};

/// Usually checks two frames. Invalid frames and tags at the ends cost a check each.
inline ValidTimes valid_times(const FrameCheck& check, const Modules& modules, const std::byte* frames,
                              std::size_t count) {
    std::size_t first = 0;
    while (first < count && !check.valid(frames + first * frame_bytes, modules))
        ++first;
    if (first == count) return {};
    std::size_t last = count - 1;
    while (last > first && !check.valid(frames + last * frame_bytes, modules))
        --last;
    ValidTimes times{frame_time(frames + first * frame_bytes), frame_time(frames + last * frame_bytes),
                     static_cast<std::uint32_t>(last - first + 1)};
    while (first < last && !check.valid_hit(frames + first * frame_bytes, modules))
        ++first;
    while (last > first && !check.valid_hit(frames + last * frame_bytes, modules))
        --last;
    times.hits = check.valid_hit(frames + first * frame_bytes, modules);
    if (!times.hits) return times;
    times.first_bdm = frame_bdm(frames + first * frame_bytes, check.version);
    times.last_bdm = frame_bdm(frames + last * frame_bytes, check.version);
    times.temperature_16ths = frame_temperature(frames + last * frame_bytes, check.version);
    return times;
}

/// The earliest time of a valid frame that is not below `lowest`; UINT64_MAX: none. Checks every frame.
inline std::uint64_t earliest_valid_time(const FrameCheck& check, const std::byte* frames, std::size_t count,
                                         std::uint64_t lowest) {
    std::uint64_t earliest = UINT64_MAX;
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* const frame = frames + i * frame_bytes;
        const std::uint64_t time = frame_time(frame);
        if (time < earliest && time >= lowest && check.valid(frame)) earliest = time;
    }
    return earliest;
}

/// Writes 16 bytes. Fields with fewer bits on the wire (markers, du, channel; in version 1 the module) are
/// truncated; in version 2 the temperature is rounded down.
void encode_frame(const Frame& f, std::byte* out, FrameVersion version);
void encode_tag(const TagFrame& t, std::byte* out, FrameVersion version);

/// The header of a sequenced datagram.
struct DatagramHeader {
    std::uint8_t flags = 0;
    std::uint16_t source = 0;
    std::uint64_t sequence = 0;
};

/// Writes 16 bytes. `version`: of the frames behind it.
void encode_header(const DatagramHeader& h, std::byte* out, FrameVersion version);

/// Why a payload is not a valid datagram.
enum class Malformed : std::uint8_t {
    none,
    too_short,    ///< sequenced: under 16 bytes; bare: under one frame
    too_long,     ///< more than UDP carries: a capture may say so
    bad_magic,    ///< does not start with "PETF"
    bad_version,  ///< the version of the header is not that of the scanner's frames
    ragged,       ///< the rest of the payload is not a whole number of frames
};

/// Checks a payload of `size` bytes and reads its header. `version`: of the frames that the scanner sends.
/// Bits of `flags` other than end of stream are reserved and ignored. Bare framing has no header and leaves
/// `header` unchanged.
Malformed parse_datagram(Framing framing, FrameVersion version, const std::byte* data, std::size_t size,
                         DatagramHeader& header);

}  // namespace petacq::net
