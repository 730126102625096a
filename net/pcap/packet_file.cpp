// pcapng: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html
#include "net/pcap/packet_file.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

#include "net/pcap/pcap.hpp"

namespace petacq::net {

namespace {

constexpr std::uint32_t longest_packet = 1U << 20;  // a larger value means a damaged file

constexpr std::uint32_t byte_order_magic = 0x1A2B3C4D;
constexpr std::uint32_t interface_block = 1;
constexpr std::uint32_t packet_block = 2;  // obsolete
constexpr std::uint32_t simple_packet_block = 3;
constexpr std::uint32_t statistics_block = 5;
constexpr std::uint32_t enhanced_packet_block = 6;
constexpr std::uint16_t option_end = 0;
constexpr std::uint16_t option_resolution = 9;
constexpr std::uint16_t option_offset = 14;
constexpr std::uint16_t option_dropped_by_interface = 5;  // of statistics
constexpr std::uint16_t option_dropped_by_system = 7;
constexpr std::uint32_t longest_block = 1U << 24;
constexpr std::uint32_t magic_zstd = 0xFD2FB528;
constexpr std::size_t block_frame = 12;  // type and length before the body, length behind it

bool is_known(std::uint32_t link_type) {
    switch (link_type) {
        case pcap::link_null:
        case pcap::link_ethernet:
        case pcap::link_raw:
        case pcap::link_linux_cooked:
        case pcap::link_ipv4:
        case pcap::link_ipv6:
        case pcap::link_linux_cooked_v2:
            return true;
        default:
            return false;
    }
}

/// `units` since 1970, of 10^-n s, or of 2^-n s if the highest bit of `resolution` is set.
std::int64_t ns_of(std::uint64_t units, std::uint8_t resolution, std::int64_t offset_s) {
    __extension__ using Wide = __int128;
    Wide ns = units;
    const unsigned n = resolution & 0x7FU;
    if ((resolution & 0x80U) != 0) {
        ns = ns * 1'000'000'000 >> n;
    } else {
        for (unsigned i = n; i < 9; ++i)
            ns *= 10;
        for (unsigned i = 9; i < n && ns != 0; ++i)
            ns /= 10;
    }
    ns += static_cast<Wide>(offset_s) * 1'000'000'000;
    // Room for sums of times.
    constexpr Wide most = std::numeric_limits<std::int64_t>::max() / 4;
    return static_cast<std::int64_t>(std::clamp<Wide>(ns, 0, most));
}

/// Calls `take` with code and value of each option.
template <class Number, class Take>
void each_option(std::span<const std::byte> options, const Number& number, const Take& take) {
    while (options.size() >= 4) {
        const std::uint16_t code = number(options.data());
        const std::size_t length = number(options.data() + 2);
        options = options.subspan(4);
        if (code == option_end || length > options.size()) return;
        take(code, options.first(length));
        options = options.subspan(std::min((length + 3) / 4 * 4, options.size()));
    }
}

/// Unknown only if both are.
std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
    return a || b ? std::optional(a.value_or(0) + b.value_or(0)) : std::nullopt;
}

}  // namespace

PacketFile::PacketFile(const std::string& file) : file_(file), content_(file) {
    read_header();
}

void PacketFile::refuse(const std::string& why) const {
    throw PcapError(file_ + ": " + why);
}

std::string PacketFile::place() const {
    return " (packet " + std::to_string(packets_ + 1) + " at byte " + std::to_string(content_.passed()) + ")";
}

std::uint16_t PacketFile::u16(const std::byte* at) const {
    std::uint16_t v = 0;
    std::memcpy(&v, at, sizeof v);
    return swapped_ ? __builtin_bswap16(v) : v;
}

std::uint32_t PacketFile::u32(const std::byte* at) const {
    std::uint32_t v = 0;
    std::memcpy(&v, at, sizeof v);
    return swapped_ ? __builtin_bswap32(v) : v;
}

std::uint64_t PacketFile::u64(const std::byte* at) const {
    const std::uint64_t first = u32(at);
    const std::uint64_t second = u32(at + 4);
    return swapped_ == (std::endian::native == std::endian::little) ? first << 32 | second
                                                                    : second << 32 | first;
}

std::optional<std::uint64_t> PacketFile::dropped() const {
    std::optional<std::uint64_t> all = dropped_before_;
    for (const Interface& interface : interfaces_)
        all = sum(all, interface.dropped);
    return all;
}

void PacketFile::read_header() {
    const std::span<const std::byte> header = content_.ahead(sizeof(pcap::FileHeader));
    if (header.size() < sizeof(pcap::FileHeader)) {
        refuse("not a pcap file: expected a header of 24 bytes, found a file of " +
               std::to_string(header.size()));
    }
    const std::byte* const data = header.data();
    std::uint32_t magic = u32(data);
    if (magic == magic_zstd) refuse("compressed with zstd; expected pcap, pcapng, or one of them with gzip");
    if (magic == pcap::magic_pcapng) {
        blocks_ = true;
        return;
    }
    swapped_ = magic == __builtin_bswap32(pcap::magic_microseconds) ||
               magic == __builtin_bswap32(pcap::magic_nanoseconds);
    magic = u32(data);
    if (magic != pcap::magic_microseconds && magic != pcap::magic_nanoseconds) {
        refuse(
            "not a pcap file: expected it to start with A1 B2 C3 D4 or A1 B2 3C 4D, in either byte order "
            "(pcap), or "
            "0A 0D 0D 0A (pcapng)");
    }
    fraction_ns_ = magic == pcap::magic_nanoseconds ? 1 : 1'000;
    const std::uint16_t version = u16(data + offsetof(pcap::FileHeader, version_major));
    if (version != 2) refuse("pcap version " + std::to_string(version) + ", expected 2");
    link_type_ =
        u32(data + offsetof(pcap::FileHeader, link_type)) & 0xFFFF;  // the upper bits describe checksums
    if (!is_known(link_type_)) {
        refuse(
            "link type " + std::to_string(link_type_) +
            "; expected Ethernet (1), Linux cooked (113, 276), BSD loopback (0) or raw IP (101, 228, 229)");
    }
    ours_ = u32(data + offsetof(pcap::FileHeader, accuracy)) == pcap::our_mark;
    content_.pass(sizeof(pcap::FileHeader));
}

std::optional<CapturedPacket> PacketFile::next() {
    return blocks_ ? next_block() : next_record();
}

std::optional<CapturedPacket> PacketFile::next_record() {
    const std::span<const std::byte> header = content_.ahead(sizeof(pcap::RecordHeader));
    if (header.empty()) return {};
    if (header.size() < sizeof(pcap::RecordHeader)) {
        refuse("ends within the header of a packet: the capture was cut" + place());
    }
    const std::byte* const record = header.data();
    const std::uint32_t captured = u32(record + offsetof(pcap::RecordHeader, captured));
    const std::uint32_t length = u32(record + offsetof(pcap::RecordHeader, length));
    if (captured > longest_packet || captured > length) {
        refuse("damaged: a packet of " + std::to_string(captured) + " of " + std::to_string(length) +
               " bytes" + place());
    }
    CapturedPacket packet;
    packet.time_ns = std::int64_t{u32(record)} * 1'000'000'000 +
                     std::int64_t{u32(record + offsetof(pcap::RecordHeader, fraction))} * fraction_ns_;
    packet.link_type = link_type_;
    const std::size_t size = sizeof(pcap::RecordHeader) + captured;
    const std::span<const std::byte> whole = content_.ahead(size);
    if (whole.size() < size) refuse("ends within a packet: the capture was cut" + place());
    packet.bytes = whole.subspan(sizeof(pcap::RecordHeader));
    packet.missing = length - captured;
    content_.pass(size);
    ++packets_;
    return packet;
}

std::optional<CapturedPacket> PacketFile::next_block() {
    while (true) {
        const std::span<const std::byte> head = content_.ahead(block_frame);
        if (head.empty()) return {};
        if (head.size() < block_frame) refuse("ends within a block: the capture was cut" + place());
        if (u32(head.data()) == pcap::magic_pcapng) read_section();
        const std::uint32_t type = u32(head.data());
        const std::uint32_t length = u32(head.data() + 4);
        if (length < block_frame || length % 4 != 0 || length > longest_block)
            refuse("damaged: a block of " + std::to_string(length) + " bytes" + place());
        const std::span<const std::byte> block = content_.ahead(length);
        if (block.size() < length) refuse("ends within a block: the capture was cut" + place());
        if (u32(block.data() + length - 4) != length)
            refuse("damaged: the two lengths of a block differ" + place());
        const std::span<const std::byte> body = block.subspan(8, length - block_frame);
        if (type == interface_block) read_interface(body);
        if (type == statistics_block) read_statistics(body);
        const std::optional<CapturedPacket> packet = packet_of(type, body);
        content_.pass(length);
        if (!packet) continue;
        ++packets_;
        return packet;
    }
}

/// The block ahead starts a section, whose byte order and interfaces are its own.
void PacketFile::read_section() {
    const std::byte* const order = content_.ahead(block_frame).data() + 8;
    swapped_ = false;
    swapped_ = u32(order) == __builtin_bswap32(byte_order_magic);
    if (u32(order) != byte_order_magic) refuse("damaged: a section without a byte order" + place());
    dropped_before_ = dropped();
    interfaces_.clear();
}

void PacketFile::read_interface(std::span<const std::byte> body) {
    if (body.size() < 8) refuse("damaged: the description of an interface is too short" + place());
    Interface interface;
    interface.link_type = u16(body.data());
    interface.snap_length = u32(body.data() + 4);
    each_option(
        body.subspan(8), [&](const std::byte* at) { return u16(at); },
        [&](std::uint16_t code, std::span<const std::byte> value) {
            if (code == option_resolution && value.size() == 1)
                interface.resolution = static_cast<std::uint8_t>(value[0]);
            if (code == option_offset && value.size() == 8)
                interface.offset_s = static_cast<std::int64_t>(u64(value.data()));
        });
    interfaces_.push_back(interface);
}

/// The latest of an interface counts: its counters grow.
void PacketFile::read_statistics(std::span<const std::byte> body) {
    if (body.size() < 12) refuse("damaged: the statistics of an interface are too short" + place());
    const std::size_t index = u32(body.data());
    if (index >= interfaces_.size()) return;
    std::optional<std::uint64_t> dropped;
    each_option(
        body.subspan(12), [&](const std::byte* at) { return u16(at); },
        [&](std::uint16_t code, std::span<const std::byte> value) {
            if ((code == option_dropped_by_interface || code == option_dropped_by_system) &&
                value.size() == 8)
                dropped = sum(dropped, u64(value.data()));
        });
    if (dropped) interfaces_[index].dropped = dropped;
}

const PacketFile::Interface& PacketFile::interface(std::size_t index) const {
    if (index >= interfaces_.size())
        refuse("damaged: a packet of interface " + std::to_string(index) + ", which is not described" +
               place());
    return interfaces_[index];
}

/// The packet in a block; nothing for a block of another kind.
std::optional<CapturedPacket> PacketFile::packet_of(std::uint32_t type, std::span<const std::byte> body) {
    const bool simple = type == simple_packet_block;
    if (!simple && type != enhanced_packet_block && type != packet_block) return {};
    const std::size_t header = simple ? 4 : 20;
    if (body.size() < header) refuse("damaged: a packet block is too short" + place());
    CapturedPacket packet;
    std::size_t captured = 0;
    std::size_t length = 0;
    if (simple) {
        const Interface& from = interface(0);
        length = u32(body.data());
        captured = from.snap_length == 0 ? length : std::min<std::size_t>(length, from.snap_length);
        packet.link_type = from.link_type;
    } else {
        const Interface& from =
            interface(type == packet_block ? std::size_t{u16(body.data())} : std::size_t{u32(body.data())});
        const std::uint64_t units = std::uint64_t{u32(body.data() + 4)} << 32 | u32(body.data() + 8);
        time_ns_ = ns_of(units, from.resolution, from.offset_s);
        captured = u32(body.data() + 12);
        length = u32(body.data() + 16);
        packet.link_type = from.link_type;
    }
    if (captured > longest_packet || captured > length || captured > body.size() - header) {
        refuse("damaged: a packet of " + std::to_string(captured) + " of " + std::to_string(length) +
               " bytes" + place());
    }
    packet.time_ns = time_ns_;
    packet.bytes = body.subspan(header, captured);
    packet.missing = length - captured;
    return packet;
}

}  // namespace petacq::net
