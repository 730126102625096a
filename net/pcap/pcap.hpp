// The pcap file format, as far as UDP over IP needs it:
// https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html and https://www.tcpdump.org/linktypes.html.
// Internal to net/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace petacq::net::pcap {

inline constexpr std::uint32_t magic_microseconds = 0xA1B2C3D4;
inline constexpr std::uint32_t magic_nanoseconds = 0xA1B23C4D;
inline constexpr std::uint32_t magic_pcapng = 0x0A0D0D0A;
/// In the field `accuracy`, which readers ignore: each packet is a datagram as it was sent ("PETD").
inline constexpr std::uint32_t our_mark = 0x50455444;

inline constexpr std::uint32_t family_ipv4 = 2;  ///< of link_null

/// The protocol of the first header of a packet.
enum LinkType : std::uint32_t {
    link_null = 0,  ///< BSD loopback: 4 bytes of protocol family
    link_ethernet = 1,
    link_raw = 101,  ///< the IP packet itself
    link_linux_cooked = 113,
    link_ipv4 = 228,
    link_ipv6 = 229,
    link_linux_cooked_v2 = 276
};

struct FileHeader {
    std::uint32_t magic;
    std::uint16_t version_major;
    std::uint16_t version_minor;
    std::int32_t zone;
    std::uint32_t accuracy;
    std::uint32_t snap_length;
    std::uint32_t link_type;
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
    std::uint32_t seconds;
    std::uint32_t fraction;  ///< micro- or nanoseconds, as the magic says
    std::uint32_t captured;  ///< bytes in the file
    std::uint32_t length;    ///< bytes of the packet
};
static_assert(sizeof(RecordHeader) == 16);

inline constexpr std::size_t ip_header_bytes = 20;    ///< of IPv4, without options
inline constexpr std::size_t ipv6_header_bytes = 40;  ///< without extensions
inline constexpr std::size_t udp_header_bytes = 8;
inline constexpr std::uint8_t protocol_udp = 17;

}  // namespace petacq::net::pcap
