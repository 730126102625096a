#include "net/pcap_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "net/pcap.hpp"

namespace petacq::net {

namespace {

constexpr std::size_t most_waiting = 64;  // incomplete packets
// The limits of Linux (ipfrag_time, ipfrag_max_dist). A sender reuses an identification after 65,536 packets,
// and the remains of a packet that lost a fragment must not become part of a later one.
constexpr std::int64_t longest_wait_ns = 30'000'000'000;
constexpr std::size_t longest_distance = 64;
constexpr std::uint32_t longest_packet = 1U << 20;  // a larger value means a damaged file

std::uint16_t big16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(bytes[at]) << 8 |
                                      static_cast<unsigned>(bytes[at + 1]));
}

std::uint32_t big32(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint32_t>(big16(bytes, at)) << 16 | big16(bytes, at + 2);
}

constexpr std::uint16_t type_ipv4 = 0x0800;

bool is_vlan(std::uint16_t type) {
    return type == 0x8100 || type == 0x88A8 || type == 0x9100;
}

}  // namespace

PcapReader::PcapReader(const std::string& file, std::vector<std::uint16_t> ports)
    : file_(file), ports_(std::move(ports)) {
    std::sort(ports_.begin(), ports_.end());
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) {
        const int error = errno;
        if (fd >= 0) ::close(fd);
        throw std::system_error(error, std::generic_category(), file);
    }
    size_ = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    if (size_ < sizeof(pcap::FileHeader)) {
        ::close(fd);
        throw PcapError(file + ": not a pcap file: expected a header of 24 bytes, found a file of " +
                        std::to_string(size_));
    }
    void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (mapped == MAP_FAILED) throw std::system_error(error, std::generic_category(), file);
    ::madvise(mapped, size_, MADV_SEQUENTIAL);
    data_ = static_cast<const std::byte*>(mapped);
    try {
        read_header();
    } catch (...) {
        ::munmap(mapped, size_);
        throw;
    }
}

void PcapReader::read_header() {
    pcap::FileHeader header{};
    std::memcpy(&header, data_, sizeof header);
    if (header.magic == pcap::magic_pcapng) {
        refuse("a pcapng file; expected pcap: convert it with 'editcap -F nsecpcap IN OUT'");
    }
    swapped_ = header.magic == __builtin_bswap32(pcap::magic_microseconds) ||
               header.magic == __builtin_bswap32(pcap::magic_nanoseconds);
    const std::uint32_t magic = in_order(header.magic);
    if (magic != pcap::magic_microseconds && magic != pcap::magic_nanoseconds) {
        refuse("not a pcap file: expected it to start with A1 B2 C3 D4 or A1 B2 3C 4D, in either byte order");
    }
    fraction_ns_ = magic == pcap::magic_nanoseconds ? 1 : 1'000;
    if (in_order(header.version_major) != 2) {
        refuse("pcap version " + std::to_string(in_order(header.version_major)) + ", expected 2");
    }
    link_type_ = in_order(header.link_type) & 0xFFFF;  // the upper bits describe checksums
    switch (link_type_) {
        case pcap::link_null:
        case pcap::link_ethernet:
        case pcap::link_raw:
        case pcap::link_linux_cooked:
        case pcap::link_ipv4:
        case pcap::link_linux_cooked_v2:
            break;
        default:
            refuse("link type " + std::to_string(link_type_) +
                   "; expected Ethernet (1), Linux cooked (113, 276), BSD loopback (0) or raw IP (101, 228)");
    }
    at_ = sizeof(pcap::FileHeader);
}

PcapReader::~PcapReader() {
    ::munmap(const_cast<std::byte*>(data_), size_);
}

std::uint16_t PcapReader::in_order(std::uint16_t v) const {
    return swapped_ ? __builtin_bswap16(v) : v;
}

std::uint32_t PcapReader::in_order(std::uint32_t v) const {
    return swapped_ ? __builtin_bswap32(v) : v;
}

void PcapReader::refuse(const std::string& why) const {
    throw PcapError(file_ + ": " + why);
}

bool PcapReader::next(CapturedDatagram& out) {
    const auto place = [&] {
        return " (packet " + std::to_string(counts_.packets + 1) + " at byte " + std::to_string(at_) + ")";
    };
    while (at_ < size_) {
        pcap::RecordHeader record{};
        if (size_ - at_ < sizeof record) {
            refuse("ends within the header of a packet: the capture was cut" + place());
        }
        std::memcpy(&record, data_ + at_, sizeof record);
        const std::uint32_t captured = in_order(record.captured);
        const std::uint32_t length = in_order(record.length);
        if (captured > longest_packet || captured > length) {
            refuse("damaged: a packet of " + std::to_string(captured) + " of " + std::to_string(length) +
                   " bytes" + place());
        }
        if (captured > size_ - at_ - sizeof record) {
            refuse("ends within a packet: the capture was cut" + place());
        }
        const std::span packet(data_ + at_ + sizeof record, captured);
        at_ += sizeof record + captured;
        ++counts_.packets;
        out.time_ns = std::int64_t{in_order(record.seconds)} * 1'000'000'000 +
                      std::int64_t{in_order(record.fraction)} * fraction_ns_;
        const std::optional<std::size_t> ip = ip_offset(packet);
        if (!ip) {
            ++counts_.other;
        } else if (take_ip(packet.subspan(*ip), length - captured, out)) {
            ++counts_.datagrams;
            return true;
        }
    }
    counts_.fragments_incomplete += waiting_.size();
    waiting_.clear();
    return false;
}

/// The offset of the IPv4 packet, at most the size of `packet`; nothing for another protocol.
std::optional<std::size_t> PcapReader::ip_offset(std::span<const std::byte> packet) const {
    std::size_t at = 0;
    switch (link_type_) {
        case pcap::link_raw:
        case pcap::link_ipv4:
            return 0;
        case pcap::link_null:
            // In the byte order of the capturing host, which may differ from that of the file.
            if (packet.size() < 4) return {};
            return big32(packet, 0) == pcap::family_ipv4 ||
                           __builtin_bswap32(big32(packet, 0)) == pcap::family_ipv4
                       ? std::optional<std::size_t>(4)
                       : std::nullopt;
        case pcap::link_linux_cooked:
            at = 14;  // offset of the protocol
            break;
        case pcap::link_linux_cooked_v2:
            if (packet.size() < 20) return {};
            return big16(packet, 0) == type_ipv4 ? std::optional<std::size_t>(20) : std::nullopt;
        default:
            at = 12;
            break;
    }
    while (packet.size() >= at + 2) {
        const std::uint16_t type = big16(packet, at);
        if (type == type_ipv4) return at + 2;
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

bool PcapReader::take_udp(std::span<const std::byte> udp, std::size_t missing, CapturedDatagram& out) {
    if (udp.size() < pcap::udp_header_bytes) return false;
    out.from.port = big16(udp, 0);
    out.to.port = big16(udp, 2);
    if (!ports_.empty() && !std::binary_search(ports_.begin(), ports_.end(), out.to.port)) return false;
    std::size_t length = big16(udp, 4);
    if (length == 0) length = udp.size() + missing;
    if (length < pcap::udp_header_bytes || length > udp.size() + missing) return false;
    if (length > udp.size()) {
        refuse("packet " + std::to_string(counts_.packets) + ": " + std::to_string(length - udp.size()) +
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

PcapReader::Fragments& PcapReader::fragments_of(std::uint16_t identification,
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
                      std::uint16_t identification, CapturedDatagram& out) {
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
