#include "net/pcap/pcap_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "net/pcap/pcap.hpp"

namespace petacq::net {

namespace {

constexpr std::size_t max_waiting = 64;  // incomplete packets
// The limits of Linux (ipfrag_time, ipfrag_max_dist). A sender reuses an identification after 65,536 packets,
// and the remains of a packet that lost a fragment must not become part of a later one.
constexpr std::int64_t longest_wait_ns = 30'000'000'000;
constexpr std::size_t longest_distance = 64;

std::uint16_t big16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(bytes[at]) << 8 |
                                      static_cast<unsigned>(bytes[at + 1]));
}

std::uint32_t big32(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint32_t>(big16(bytes, at)) << 16 | big16(bytes, at + 2);
}

in6_addr ipv6_at(std::span<const std::byte> bytes, std::size_t at) {
    in6_addr address{};
    std::memcpy(&address, bytes.subspan(at, sizeof address).data(), sizeof address);
    return address;
}

constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86DD;
// Of a GRE header.
constexpr std::uint16_t type_ethernet = 0x6558;
constexpr std::uint16_t type_erspan = 0x88BE;  // I and II
constexpr std::uint16_t type_erspan_3 = 0x22EB;

constexpr std::uint8_t protocol_gre = 47;
constexpr int deepest_tunnel = 4;

// VXLAN (RFC 7348), at its port and at that of older Linux kernels.
constexpr std::array<std::uint16_t, 2> vxlan_ports{4789, 8472};
constexpr std::size_t vxlan_header_bytes = 8;

bool is_vxlan(std::span<const std::byte> payload) {
    return payload.size() >= vxlan_header_bytes && big32(payload, 0) == 0x08000000 &&
           payload[vxlan_header_bytes - 1] == std::byte{0};
}

bool is_vlan(std::uint16_t type) {
    return type == 0x8100 || type == 0x88A8 || type == 0x9100;
}

}  // namespace

PcapReader::PcapReader(const std::string& file, std::vector<std::uint16_t> ports)
    : file_(file), ports_(std::move(ports)) {
    std::sort(ports_.begin(), ports_.end());
}

PcapCounts& PcapCounts::operator+=(const PcapCounts& more) {
    packets += more.packets;
    datagrams += more.datagrams;
#define PETACQ_ADD(name, text) name += more.name;
    PETACQ_UNUSED_PACKETS(PETACQ_ADD)
#undef PETACQ_ADD
    fragments += more.fragments;
    fragments_incomplete += more.fragments_incomplete;
    return *this;
}

std::string unused_text(const PcapCounts& counts) {
    std::string text;
    const auto add = [&](std::uint64_t n, const char* what) {
        if (n > 0) text += (text.empty() ? "" : ", ") + std::to_string(n) + ' ' + what;
    };
#define PETACQ_TEXT(name, what) add(counts.name, what);
    PETACQ_UNUSED_PACKETS(PETACQ_TEXT)
#undef PETACQ_TEXT
    add(counts.fragments_incomplete, "with missing fragments");
    return text;
}

bool PcapReader::next(CapturedDatagram& out) {
    while (const std::optional<CapturedPacket> packet = file_.next()) {
        ++counts_.packets;
        out.time_ns = packet->time_ns;
        depth_ = 0;
        if (take_link(packet->link_type, {packet->bytes, packet->missing}, out)) {
            ++counts_.datagrams;
            return true;
        }
    }
    counts_.fragments_incomplete += waiting_.size();
    waiting_.clear();
    return false;
}

bool PcapReader::skip(std::uint64_t& kind) {
    ++kind;
    return false;
}

/// A packet that ends within a header.
bool PcapReader::skip_short(const PacketBytes& piece) {
    return skip(piece.missing > 0 ? counts_.cut_short : counts_.damaged);
}

bool PcapReader::take_link(std::uint32_t link_type, PacketBytes packet, CapturedDatagram& out) {
    const std::span<const std::byte> bytes = packet.bytes;
    std::size_t at = 0;
    switch (link_type) {
        case pcap::link_raw:
        case pcap::link_ipv4:
        case pcap::link_ipv6: {
            if (bytes.empty()) return skip_short(packet);
            const bool six = static_cast<unsigned>(bytes[0]) >> 4 == 6;
            return take_network(six ? type_ipv6 : type_ipv4, packet, out);
        }
        case pcap::link_null: {
            if (bytes.size() < 4) return skip_short(packet);
            // In the byte order of the capturing host, which may differ from that of the file.
            const std::uint32_t family = std::min(big32(bytes, 0), __builtin_bswap32(big32(bytes, 0)));
            // The numbers of Linux, of NetBSD, FreeBSD and macOS.
            const bool six = family == 10 || family == 24 || family == 28 || family == 30;
            const std::uint16_t type = family == pcap::family_ipv4 ? type_ipv4 : six ? type_ipv6 : 0;
            return take_network(type, packet.behind(4), out);
        }
        case pcap::link_linux_cooked_v2:
            if (bytes.size() < 20) return skip_short(packet);
            return take_network(big16(bytes, 0), packet.behind(20), out);
        case pcap::link_linux_cooked:
            at = 14;  // offset of the protocol
            break;
        case pcap::link_ethernet:
            at = 12;
            break;
        default:
            return skip(counts_.not_ip);
    }
    while (bytes.size() >= at + 2) {
        const std::uint16_t type = big16(bytes, at);
        if (!is_vlan(type)) return take_network(type, packet.behind(at + 2), out);
        at += 4;
    }
    return skip_short(packet);
}

bool PcapReader::take_network(std::uint16_t type, PacketBytes packet, CapturedDatagram& out) {
    if (type == type_ipv4) return take_ip(packet, out);
    if (type == type_ipv6) return take_ipv6(packet, out);
    return skip(counts_.not_ip);
}

bool PcapReader::take_ip(PacketBytes packet, CapturedDatagram& out) {
    const std::span<const std::byte> bytes = packet.bytes;
    if (bytes.size() < pcap::ip_header_bytes) return skip_short(packet);
    const std::size_t header = (static_cast<std::size_t>(bytes[0]) & 0xF) * 4;
    std::size_t length = big16(bytes, 2);
    // Zero means a packet above 64 KiB, which the network card segments.
    if (length == 0) length = bytes.size() + packet.missing;
    if (static_cast<unsigned>(bytes[0]) >> 4 != 4 || header < pcap::ip_header_bytes || length < header ||
        length > bytes.size() + packet.missing) {
        return skip(counts_.damaged);
    }
    if (bytes.size() < header) return skip_short(packet);
    const auto protocol = static_cast<std::uint8_t>(bytes[9]);
    if (protocol != pcap::protocol_udp && protocol != protocol_gre) return skip(counts_.not_udp);
    out.from.address = big32(bytes, 12);
    out.to.address = big32(bytes, 16);
    const std::uint16_t fragment = big16(bytes, 6);
    const std::size_t offset = std::size_t{fragment & 0x1FFFU} * 8;
    const bool more = (fragment & 0x2000U) != 0;
    const std::size_t present = std::min(length, bytes.size());
    const PacketBytes body{bytes.subspan(header, present - header), length - present};
    if (offset == 0 && !more) return take_transport(protocol, body, out);
    ++counts_.fragments;
    return join(protocol, body, offset, !more, big16(bytes, 4), out);
}

bool PcapReader::take_ipv6(PacketBytes packet, CapturedDatagram& out) {
    const std::span<const std::byte> bytes = packet.bytes;
    if (bytes.size() < pcap::ipv6_header_bytes) return skip_short(packet);
    constexpr unsigned hop_by_hop = 0, routing = 43, fragment = 44, destination = 60;
    std::size_t length = pcap::ipv6_header_bytes + big16(bytes, 4);
    // Zero means a packet above 64 KiB, which the network card segments.
    if (length == pcap::ipv6_header_bytes) length = bytes.size() + packet.missing;
    if (static_cast<unsigned>(bytes[0]) >> 4 != 6 || length > bytes.size() + packet.missing)
        return skip(counts_.damaged);
    out.from.address = number_of(ipv6_at(bytes, 8));
    out.to.address = number_of(ipv6_at(bytes, 24));
    const std::size_t present = std::min(length, bytes.size());
    const std::size_t missing = length - present;
    auto kind = static_cast<unsigned>(bytes[6]);
    std::size_t at = pcap::ipv6_header_bytes;
    while (at + 8 <= present && (kind == hop_by_hop || kind == routing || kind == destination)) {
        kind = static_cast<unsigned>(bytes[at]);
        at += 8 + 8 * static_cast<std::size_t>(bytes[at + 1]);
    }
    std::optional<std::size_t> place;  // of a fragment
    std::uint32_t identification = 0;
    if (kind == fragment && at + 8 <= present) {
        place = big16(bytes, at + 2);
        identification = big32(bytes, at + 4);
        kind = static_cast<unsigned>(bytes[at]);
        at += 8;
    }
    if (kind != pcap::protocol_udp && kind != protocol_gre)
        return at > present ? skip_short({bytes, missing}) : skip(counts_.not_udp);
    if (at > present) return skip_short({bytes, missing});
    const auto protocol = static_cast<std::uint8_t>(kind);
    const PacketBytes body{bytes.subspan(at, present - at), missing};
    if (!place) return take_transport(protocol, body, out);
    ++counts_.fragments;
    return join(protocol, body, *place & 0xFFF8U, (*place & 1U) == 0, identification, out);
}

bool PcapReader::take_transport(std::uint8_t protocol, PacketBytes body, CapturedDatagram& out) {
    return protocol == protocol_gre ? take_gre(body, out) : take_udp(body, out);
}

bool PcapReader::take_udp(PacketBytes udp, CapturedDatagram& out) {
    if (udp.bytes.size() < pcap::udp_header_bytes) return skip_short(udp);
    out.from.port = big16(udp.bytes, 0);
    out.to.port = big16(udp.bytes, 2);
    const auto among = [&](const auto& ports) {
        return std::binary_search(ports.begin(), ports.end(), out.to.port);
    };
    if (!among(ports_)) {
        const PacketBytes payload = udp.behind(pcap::udp_header_bytes);
        if (among(vxlan_ports) && is_vxlan(payload.bytes)) {
            if (++depth_ > deepest_tunnel) return skip(counts_.tunnel);
            return take_link(pcap::link_ethernet, payload.behind(vxlan_header_bytes), out);
        }
        if (!ports_.empty()) return skip(counts_.other_port);
    }
    std::size_t length = big16(udp.bytes, 4);
    if (length == 0) length = udp.bytes.size() + udp.missing;
    if (length < pcap::udp_header_bytes || length > udp.bytes.size() + udp.missing)
        return skip(counts_.damaged);
    if (length > udp.bytes.size()) {
        file_.refuse(
            "packet " + std::to_string(counts_.packets) + ": " + std::to_string(length - udp.bytes.size()) +
            " of the " + std::to_string(length) +
            " bytes of a datagram were not captured: the snap length was too short; capture with 'tcpdump "
            "-s 0'");
    }
    out.payload = udp.bytes.subspan(pcap::udp_header_bytes, length - pcap::udp_header_bytes);
    return true;
}

/// GRE (RFC 2784, 2890) and, in it, ERSPAN (draft-foschiano-erspan).
bool PcapReader::take_gre(PacketBytes gre, CapturedDatagram& out) {
    if (gre.bytes.size() < 4) return skip_short(gre);
    const std::uint16_t flags = big16(gre.bytes, 0);
    const std::uint16_t type = big16(gre.bytes, 2);
    constexpr std::uint16_t has_checksum = 0x8000;
    constexpr std::uint16_t has_key = 0x2000;
    constexpr std::uint16_t has_number = 0x1000;
    constexpr std::uint16_t unsupported = 0x4007;  // source routes, other versions
    if ((flags & unsupported) != 0 || ++depth_ > deepest_tunnel) return skip(counts_.tunnel);
    std::size_t header = 4;
    for (const std::uint16_t part : {has_checksum, has_key, has_number})
        if ((flags & part) != 0) header += 4;
    if (type == type_erspan && (flags & has_number) != 0) header += 8;
    if (type == type_erspan_3) {
        header += 12;
        if (gre.bytes.size() < header) return skip_short(gre);
        const bool has_more = (gre.bytes[header - 1] & std::byte{1}) != std::byte{0};
        if (has_more) header += 8;
    }
    if (gre.bytes.size() < header) return skip_short(gre);
    const PacketBytes inner = gre.behind(header);
    if (type == type_ethernet || type == type_erspan || type == type_erspan_3)
        return take_link(pcap::link_ethernet, inner, out);
    if (type == type_ipv4 || type == type_ipv6) return take_network(type, inner, out);
    return skip(counts_.tunnel);
}

/// Gives up packets that are too old or too far back to be completed by the fragment `now`.
void PcapReader::give_up_stale(const CapturedDatagram& now) {
    for (auto f = waiting_.begin(); f != waiting_.end();) {
        if (f->from == now.from.address) ++f->distance;
        if (f->distance > longest_distance || std::abs(now.time_ns - f->first_ns) > longest_wait_ns) {
            f = waiting_.erase(f);
            ++counts_.fragments_incomplete;
        } else {
            ++f;
        }
    }
}

PcapReader::Fragments& PcapReader::fragments_of(std::uint32_t identification,
                                                const CapturedDatagram& packet) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Fragments& f) {
        return f.identification == identification && f.from == packet.from.address &&
               f.to == packet.to.address;
    });
    if (found != waiting_.end()) return *found;
    if (waiting_.size() == max_waiting) {
        waiting_.pop_front();
        ++counts_.fragments_incomplete;
    }
    Fragments& fresh = waiting_.emplace_back();
    fresh.identification = identification;
    fresh.from = packet.from.address;
    fresh.to = packet.to.address;
    fresh.first_ns = packet.time_ns;
    return fresh;
}

/// Adds a fragment; true if it completes a datagram. A fragment whose end was not captured counts as present:
/// whether the datagram was requested is known only from the fragment with its port.
bool PcapReader::join(std::uint8_t protocol, PacketBytes part, std::size_t offset, bool last,
                      std::uint32_t identification, CapturedDatagram& out) {
    constexpr std::size_t unit = 8;
    const std::size_t end = offset + part.bytes.size() + part.missing;
    if (end == offset || end > 65535 || (!last && end % unit != 0)) return false;
    give_up_stale(out);
    Fragments& packet = fragments_of(identification, out);
    const auto remove = [&] { waiting_.remove_if([&](const Fragments& f) { return &f == &packet; }); };
    packet.distance = 0;
    if (packet.bytes.size() < end) {
        packet.bytes.resize(end);
        packet.present.resize((end + unit - 1) / unit);
    }
    const auto first = packet.present.begin() + static_cast<std::ptrdiff_t>(offset / unit);
    const auto behind = packet.present.begin() + static_cast<std::ptrdiff_t>((end + unit - 1) / unit);
    const auto present = std::count(first, behind, true);
    if (present == behind - first) return false;  // a duplicate
    if (present > 0) {                            // overlaps in part: it belongs to another packet
        remove();
        ++counts_.fragments_incomplete;
        return false;
    }
    std::copy(part.bytes.begin(), part.bytes.end(),
              packet.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    std::fill(first, behind, true);
    packet.missing += part.missing;
    if (last) packet.length = end;
    if (!packet.length || packet.bytes.size() != *packet.length ||
        std::find(packet.present.begin(), packet.present.end(), false) != packet.present.end()) {
        return false;
    }
    assembled_ = std::move(packet.bytes);
    const std::size_t missing_in_all = std::min(packet.missing, assembled_.size());
    remove();
    const std::span<const std::byte> whole(assembled_);
    return take_transport(protocol, {whole.first(whole.size() - missing_in_all), missing_in_all}, out);
}

}  // namespace petacq::net
