#include "net/pcap/pcap_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "net/pcap/pcap.hpp"

namespace petacq::net {

namespace {

constexpr std::size_t most_waiting = 64;  // incomplete packets
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

bool is_ip(std::uint16_t type) {
    return type == 0x0800 || type == 0x86DD;
}

/// Of BSD loopback: IPv4, and IPv6 as Linux, the BSDs and macOS number it.
bool is_ip_family(std::uint32_t family) {
    return family == pcap::family_ipv4 || family == 10 || family == 24 || family == 28 || family == 30;
}

bool is_vlan(std::uint16_t type) {
    return type == 0x8100 || type == 0x88A8 || type == 0x9100;
}

}  // namespace

PcapReader::PcapReader(const std::string& file, std::vector<std::uint16_t> ports)
    : file_(file), ports_(std::move(ports)) {
    std::sort(ports_.begin(), ports_.end());
}

bool PcapReader::next(CapturedDatagram& out) {
    while (const std::optional<CapturedPacket> packet = file_.next()) {
        ++counts_.packets;
        out.time_ns = packet->time_ns;
        const std::optional<std::size_t> ip = ip_offset(*packet);
        if (!ip) {
            ++counts_.other;
        } else if (take_ip(packet->bytes.subspan(*ip), packet->missing, out)) {
            ++counts_.datagrams;
            return true;
        }
    }
    counts_.fragments_incomplete += waiting_.size();
    waiting_.clear();
    return false;
}

/// The offset of the IP packet, at most the size of the packet; nothing for another protocol.
std::optional<std::size_t> PcapReader::ip_offset(const CapturedPacket& captured) {
    const std::span<const std::byte> packet = captured.bytes;
    std::size_t at = 0;
    switch (captured.link_type) {
        case pcap::link_raw:
        case pcap::link_ipv4:
        case pcap::link_ipv6:
            return 0;
        case pcap::link_null:
            // In the byte order of the capturing host, which may differ from that of the file.
            if (packet.size() < 4) return {};
            return is_ip_family(big32(packet, 0)) || is_ip_family(__builtin_bswap32(big32(packet, 0)))
                       ? std::optional<std::size_t>(4)
                       : std::nullopt;
        case pcap::link_linux_cooked:
            at = 14;  // offset of the protocol
            break;
        case pcap::link_linux_cooked_v2:
            if (packet.size() < 20) return {};
            return is_ip(big16(packet, 0)) ? std::optional<std::size_t>(20) : std::nullopt;
        case pcap::link_ethernet:
            at = 12;
            break;
        default:
            return {};
    }
    while (packet.size() >= at + 2) {
        const std::uint16_t type = big16(packet, at);
        if (is_ip(type)) return at + 2;
        if (!is_vlan(type)) return {};
        at += 4;
    }
    return {};
}

/// The last `missing` bytes of the packet were not captured. True if `out` is a complete datagram.
bool PcapReader::take_ip(std::span<const std::byte> packet, std::size_t missing, CapturedDatagram& out) {
    const auto other = [&] {
        ++counts_.other;
        return false;
    };
    if (packet.size() >= pcap::ipv6_header_bytes && static_cast<unsigned>(packet[0]) >> 4 == 6)
        return take_ipv6(packet, missing, out);
    if (packet.size() < pcap::ip_header_bytes || static_cast<unsigned>(packet[0]) >> 4 != 4) return other();
    const std::size_t header = (static_cast<std::size_t>(packet[0]) & 0xF) * 4;
    std::size_t length = big16(packet, 2);
    // Zero means a packet above 64 KiB, which the network card segments.
    if (length == 0) length = packet.size() + missing;
    if (header < pcap::ip_header_bytes || length < header || packet.size() < header ||
        packet[9] != std::byte{pcap::protocol_udp} || length > packet.size() + missing) {
        return other();
    }
    out.from.address = big32(packet, 12);
    out.to.address = big32(packet, 16);
    const std::uint16_t fragment = big16(packet, 6);
    const std::size_t offset = std::size_t{fragment & 0x1FFFU} * 8;
    const bool more = (fragment & 0x2000U) != 0;
    const std::size_t present = std::min(length, packet.size());
    const auto body = packet.subspan(header, present - header);
    missing = length - present;
    if (offset == 0 && !more) return take_udp(body, missing, out) || other();
    ++counts_.fragments;
    return join(body, missing, offset, !more, big16(packet, 4), out);
}

bool PcapReader::take_ipv6(std::span<const std::byte> packet, std::size_t missing, CapturedDatagram& out) {
    constexpr unsigned hop_by_hop = 0, routing = 43, fragment = 44, destination = 60;
    std::size_t length = pcap::ipv6_header_bytes + big16(packet, 4);
    // Zero means a packet above 64 KiB, which the network card segments.
    if (length == pcap::ipv6_header_bytes) length = packet.size() + missing;
    if (length > packet.size() + missing) return ++counts_.other, false;
    out.from.address = number_of(ipv6_at(packet, 8));
    out.to.address = number_of(ipv6_at(packet, 24));
    const std::size_t present = std::min(length, packet.size());
    missing = length - present;
    unsigned kind = static_cast<unsigned>(packet[6]);
    std::size_t at = pcap::ipv6_header_bytes;
    while (at + 8 <= present && (kind == hop_by_hop || kind == routing || kind == destination)) {
        kind = static_cast<unsigned>(packet[at]);
        at += 8 + 8 * static_cast<std::size_t>(packet[at + 1]);
    }
    if (at + 8 <= present && kind == fragment && packet[at] == std::byte{pcap::protocol_udp}) {
        const std::uint16_t place = big16(packet, at + 2);
        ++counts_.fragments;
        return join(packet.subspan(at + 8, present - at - 8), missing, std::size_t{place & 0xFFF8U},
                    (place & 1U) == 0, big32(packet, at + 4), out);
    }
    const bool udp = at < present && kind == pcap::protocol_udp;
    return (udp && take_udp(packet.subspan(at, present - at), missing, out)) || (++counts_.other, false);
}

bool PcapReader::take_udp(std::span<const std::byte> udp, std::size_t missing, CapturedDatagram& out) {
    if (udp.size() < pcap::udp_header_bytes) return false;
    out.from.port = big16(udp, 0);
    out.to.port = big16(udp, 2);
    if (!ports_.empty() && !std::binary_search(ports_.begin(), ports_.end(), out.to.port)) return false;
    std::size_t length = big16(udp, 4);
    if (length == 0) length = udp.size() + missing;
    if (length < pcap::udp_header_bytes || length > udp.size() + missing) return false;
    if (length > udp.size()) {
        file_.refuse(
            "packet " + std::to_string(counts_.packets) + ": " + std::to_string(length - udp.size()) +
            " of the " + std::to_string(length) +
            " bytes of a datagram were not captured: the snap length was too short; capture with 'tcpdump "
            "-s 0'");
    }
    out.payload = udp.subspan(pcap::udp_header_bytes, length - pcap::udp_header_bytes);
    return true;
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
    if (waiting_.size() == most_waiting) {
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
bool PcapReader::join(std::span<const std::byte> part, std::size_t missing, std::size_t offset, bool last,
                      std::uint32_t identification, CapturedDatagram& out) {
    constexpr std::size_t unit = 8;
    const std::size_t end = offset + part.size() + missing;
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
    std::copy(part.begin(), part.end(), packet.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    std::fill(first, behind, true);
    packet.missing += missing;
    if (last) packet.length = end;
    if (!packet.length || packet.bytes.size() != *packet.length ||
        std::find(packet.present.begin(), packet.present.end(), false) != packet.present.end()) {
        return false;
    }
    assembled_ = std::move(packet.bytes);
    const std::size_t missing_in_all = std::min(packet.missing, assembled_.size());
    remove();
    return take_udp(std::span(assembled_).first(assembled_.size() - missing_in_all), missing_in_all, out);
}

}  // namespace petacq::net
