#include "net/wire.hpp"

#include <array>

namespace petacq::net {

namespace {

constexpr std::array<unsigned char, 4> magic{'P', 'E', 'T', 'F'};
// Offsets of the fields of the header.
constexpr std::size_t version_at = 4;
constexpr std::size_t flags_at = 5;
constexpr std::size_t source_at = 6;
constexpr std::size_t sequence_at = 8;

void put16(std::byte* out, std::uint16_t v) {
    out[0] = static_cast<std::byte>(v >> 8);
    out[1] = static_cast<std::byte>(v & 0xFF);
}

void put32(std::byte* out, std::uint32_t v) {
    const std::uint32_t swapped = __builtin_bswap32(v);
    std::memcpy(out, &swapped, sizeof swapped);
}

void put64(std::byte* out, std::uint64_t v) {
    const std::uint64_t swapped = swap_bytes(v);
    std::memcpy(out, &swapped, sizeof swapped);
}

}  // namespace

void encode_frame(const Frame& f, std::byte* out, FrameVersion version) {
    put64(out + 2, f.time);
    out[10] = static_cast<std::byte>(f.x);
    out[11] = static_cast<std::byte>(f.y);
    put16(out + 12, f.energy);
    // Whole degrees round down, so that the sixteenths are never negative.
    const auto temperature = static_cast<std::uint16_t>(f.temperature_16ths);
    out[14] = static_cast<std::byte>((temperature >> 4) & 0xFF);
    const auto head_and_du = static_cast<std::byte>((f.head_marker & 0xF) << 4 | (f.du & 0xF));
    if (version == FrameVersion::one) {
        out[0] = head_and_du;
        out[1] = static_cast<std::byte>(f.bdm & 0xFF);
        out[15] = static_cast<std::byte>((temperature & 0xF) << 4 | (f.tail_marker & 0xF));
    } else {
        put16(out, f.bdm);
        out[15] = head_and_du;
    }
}

void encode_tag(const TagFrame& t, std::byte* out, FrameVersion version) {
    out[1] = static_cast<std::byte>(t.kind);
    put64(out + 2, t.time);
    put32(out + 10, t.value);
    out[14] = std::byte{0};
    const unsigned marker = (t.tag_marker & 0xFU) << 4;
    const unsigned channel = t.channel & 0xFU;
    if (version == FrameVersion::one) {
        out[0] = static_cast<std::byte>(marker | channel);
        out[15] = static_cast<std::byte>(t.tail_marker & 0xF);
    } else {
        out[0] = static_cast<std::byte>(channel);
        out[15] = static_cast<std::byte>(marker);
    }
}

void encode_header(const DatagramHeader& h, std::byte* out, FrameVersion version) {
    std::memcpy(out, magic.data(), magic.size());
    out[version_at] = static_cast<std::byte>(version);
    out[flags_at] = static_cast<std::byte>(h.flags);
    put16(out + source_at, h.source);
    put64(out + sequence_at, h.sequence);
}

Malformed parse_datagram(Framing framing, FrameVersion version, const std::byte* data, std::size_t size,
                         DatagramHeader& header) {
    static_assert(header_bytes % frame_bytes == 0,
                  "the size of the payload alone shows whether it holds whole frames");
    if (size < frame_bytes) return Malformed::too_short;
    if (size > max_datagram_bytes) return Malformed::too_long;
    if (framing == Framing::sequenced) {
        if (std::memcmp(data, magic.data(), magic.size()) != 0) return Malformed::bad_magic;
        if (data[version_at] != static_cast<std::byte>(version)) return Malformed::bad_version;
    }
    if (size % frame_bytes != 0) return Malformed::ragged;
    if (framing == Framing::sequenced) {
        header.flags = static_cast<std::uint8_t>(data[flags_at]);
        header.source = static_cast<std::uint16_t>(static_cast<unsigned>(data[source_at]) << 8 |
                                                   static_cast<unsigned>(data[source_at + 1]));
        std::uint64_t sequence = 0;
        std::memcpy(&sequence, data + sequence_at, sizeof sequence);
        header.sequence = swap_bytes(sequence);
    }
    return Malformed::none;
}

}  // namespace petacq::net
