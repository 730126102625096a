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

struct UdpHeader {
    std::uint16_t source = 0;
    std::uint16_t destination = 0;
    std::uint16_t length = 0;
    std::uint16_t checksum = 0;  // 0: none, as UDP over IPv4 may
};
static_assert(sizeof(UdpHeader) == pcap::udp_header_bytes);

// RFC 1071: the sum is the same in either byte order.
std::uint16_t checksum(const IpHeader& header) {
    std::uint16_t words[sizeof header / 2];
    std::memcpy(words, &header, sizeof header);
    std::uint32_t sum = 0;
    for (const std::uint16_t word : words)
        sum += word;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

}  // namespace

std::array<std::byte, 24> pcap_file_header() {
    return std::bit_cast<std::array<std::byte, sizeof(pcap::FileHeader)>>(
        pcap::FileHeader{pcap::magic_nanoseconds, 2, 4, 0, pcap::our_mark, 262144, pcap::link_raw});
}

// The bytes before the body of the payload, in the order of the file.
struct PcapPackets::Headers {
    pcap::RecordHeader record;
    IpHeader ip;
    UdpHeader udp;
    std::byte head[header_bytes];
};

PcapPackets::PcapPackets() : headers_(std::make_unique<Headers[]>(max_packets)) {
    pieces_.reserve(2 * max_packets);
}

PcapPackets::~PcapPackets() = default;

void PcapPackets::add(std::int64_t time_ns, Endpoint from, Endpoint to, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
    assert(!full() && head.size() <= header_bytes);
    Headers& h = headers_[size_++];
    const std::size_t length = pcap::ip_header_bytes + pcap::udp_header_bytes + head.size() + body.size();
    h.record.seconds = static_cast<std::uint32_t>(time_ns / 1'000'000'000);
    h.record.fraction = static_cast<std::uint32_t>(time_ns % 1'000'000'000);
    h.record.captured = h.record.length = static_cast<std::uint32_t>(length);
    h.ip = {};
    h.ip.length = big_endian(static_cast<std::uint16_t>(length));
    h.ip.source = big_endian(from.address);
    h.ip.destination = big_endian(to.address);
    h.ip.checksum = checksum(h.ip);
    h.udp = {};
    h.udp.source = big_endian(from.port);
    h.udp.destination = big_endian(to.port);
    h.udp.length = big_endian(static_cast<std::uint16_t>(length - pcap::ip_header_bytes));
    std::copy(head.begin(), head.end(), h.head);
    pieces_.push_back({&h, offsetof(Headers, head) + head.size()});
    // An iovec takes no const.
    if (!body.empty()) pieces_.push_back({const_cast<std::byte*>(body.data()), body.size()});
}

void PcapPackets::clear() {
    size_ = 0;
    pieces_.clear();
}

}  // namespace petacq::net
