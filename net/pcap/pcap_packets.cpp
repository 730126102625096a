#include "net/pcap/pcap_packets.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "net/pcap/pcap.hpp"
#include "net/wire.hpp"

namespace petacq::net {

namespace {

std::uint16_t big_endian(std::uint16_t v) {
    return static_cast<std::uint16_t>(v << 8 | v >> 8);
}

std::uint32_t big_endian(std::uint32_t v) {
    return __builtin_bswap32(v);
}

struct IpHeader {
    std::uint8_t version_and_length = 0x45;
    std::uint8_t service = 0;
    std::uint16_t length = 0;
    std::uint16_t identification = 0;
    std::uint16_t fragment = 0;
    std::uint8_t time_to_live = 64;
    std::uint8_t protocol = pcap::protocol_udp;
    std::uint16_t checksum = 0;
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
};
static_assert(sizeof(IpHeader) == pcap::ip_header_bytes);

struct Ipv6Header {
    std::uint8_t version_and_flow[4] = {0x60, 0, 0, 0};
    std::uint16_t length = 0;
    std::uint8_t protocol = pcap::protocol_udp;
    std::uint8_t hop_limit = 64;
    in6_addr source{};
    in6_addr destination{};
};
static_assert(sizeof(Ipv6Header) == pcap::ipv6_header_bytes);

struct UdpHeader {
    std::uint16_t source = 0;
    std::uint16_t destination = 0;
    std::uint16_t length = 0;
    std::uint16_t checksum = 0;  // 0: none, as UDP over IPv4 may
};
static_assert(sizeof(UdpHeader) == pcap::udp_header_bytes);

// RFC 1071: the sum is the same in either byte order.
class Checksum {
  public:
    void add(const void* data, std::size_t size) {
        const auto* const bytes = static_cast<const std::byte*>(data);
        for (std::size_t i = 0; i + 1 < size; i += 2) {
            std::uint16_t word = 0;
            std::memcpy(&word, bytes + i, sizeof word);
            sum_ += word;
        }
        if (size % 2 != 0) sum_ += static_cast<std::uint8_t>(bytes[size - 1]);  // hosts are little-endian
    }
    [[nodiscard]] std::uint16_t value() const {
        std::uint64_t sum = sum_;
        while (sum >> 16 != 0)
            sum = (sum & 0xFFFF) + (sum >> 16);
        return static_cast<std::uint16_t>(~sum);
    }

  private:
    std::uint64_t sum_ = 0;
};

/// Over IPv6 a datagram needs one.
std::uint16_t udp_checksum(const Ipv6Header& ip, const UdpHeader& udp, std::span<const std::byte> head,
                           std::span<const std::byte> body) {
    Checksum sum;
    sum.add(&ip.source, sizeof ip.source);
    sum.add(&ip.destination, sizeof ip.destination);
    const std::uint16_t protocol = big_endian(std::uint16_t{pcap::protocol_udp});
    sum.add(&udp.length, sizeof udp.length);
    sum.add(&protocol, sizeof protocol);
    sum.add(&udp, sizeof udp);
    sum.add(head.data(), head.size());  // of an even size, unless the body is empty
    sum.add(body.data(), body.size());
    const std::uint16_t value = sum.value();
    return value == 0 ? 0xFFFF : value;
}

}  // namespace

std::array<std::byte, 24> pcap_file_header() {
    return std::bit_cast<std::array<std::byte, sizeof(pcap::FileHeader)>>(
        pcap::FileHeader{pcap::magic_nanoseconds, 2, 4, 0, pcap::our_mark, 262144, pcap::link_raw});
}

// The bytes before the body of the payload, in the order of the file.
struct PcapPackets::Headers {
    std::array<std::byte, sizeof(pcap::RecordHeader) + sizeof(Ipv6Header) + sizeof(UdpHeader) + header_bytes>
        bytes;
};

PcapPackets::PcapPackets() : headers_(std::make_unique<Headers[]>(max_packets)) {
    pieces_.reserve(2 * max_packets);
}

PcapPackets::~PcapPackets() = default;

void PcapPackets::add(std::int64_t time_ns, Endpoint from, Endpoint to, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
    assert(!full() && head.size() <= header_bytes);
    std::byte* const first = headers_[size_++].bytes.data();
    std::byte* end = first;
    const auto append = [&end](const void* data, std::size_t size) {
        if (size > 0) std::memcpy(end, data, size);
        end += size;
    };
    const bool ipv6 = is_ipv6(from.address);
    const std::size_t udp_length = pcap::udp_header_bytes + head.size() + body.size();
    const std::size_t length = (ipv6 ? pcap::ipv6_header_bytes : pcap::ip_header_bytes) + udp_length;
    const pcap::RecordHeader record{static_cast<std::uint32_t>(time_ns / 1'000'000'000),
                                    static_cast<std::uint32_t>(time_ns % 1'000'000'000),
                                    static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(length)};
    append(&record, sizeof record);
    UdpHeader udp{big_endian(from.port), big_endian(to.port),
                  big_endian(static_cast<std::uint16_t>(udp_length)), 0};
    if (ipv6) {
        Ipv6Header ip;
        ip.length = udp.length;
        ip.source = ipv6_of(from.address);
        ip.destination = ipv6_of(to.address);
        udp.checksum = udp_checksum(ip, udp, head, body);
        append(&ip, sizeof ip);
    } else {
        IpHeader ip;
        ip.length = big_endian(static_cast<std::uint16_t>(length));
        ip.source = big_endian(from.address);
        // A socket of :: receives from both families.
        ip.destination = is_ipv6(to.address) ? 0 : big_endian(to.address);
        Checksum sum;
        sum.add(&ip, sizeof ip);
        ip.checksum = sum.value();
        append(&ip, sizeof ip);
    }
    append(&udp, sizeof udp);
    append(head.data(), head.size());
    pieces_.push_back({first, static_cast<std::size_t>(end - first)});
    // An iovec takes no const.
    if (!body.empty()) pieces_.push_back({const_cast<std::byte*>(body.data()), body.size()});
}

void PcapPackets::clear() {
    size_ = 0;
    pieces_.clear();
}

}  // namespace petacq::net
