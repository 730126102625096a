#include "net/pcap_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "net/pcap.hpp"
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

[[noreturn]] void fail(const std::string& file) {
    throw std::system_error(errno, std::generic_category(), file);
}

}  // namespace

// What stands before the payload's body, in the order of the file.
struct PcapWriter::Headers {
    pcap::RecordHeader record;
    IpHeader ip;
    UdpHeader udp;
    std::byte head[header_bytes];
};

PcapWriter::PcapWriter(const std::string& file)
    : file_(file), fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640)) {
    if (fd_ < 0) fail(file_);
    static_assert(2 * max_packets <= 1024, "IOV_MAX of Linux");
    headers_ = std::make_unique<Headers[]>(max_packets);
    pieces_.reserve(2 * max_packets);
    // Written by itself: the reader tells an empty capture from a file of something else.
    const pcap::FileHeader header{pcap::magic_nanoseconds, 2, 4, 0, 0, 262144, pcap::link_raw};
    if (::write(fd_, &header, sizeof header) != static_cast<ssize_t>(sizeof header)) {
        const int error = errno;
        ::close(fd_);
        ::unlink(file_.c_str());
        throw std::system_error(error, std::generic_category(), file_);
    }
    bytes_ = sizeof header;
}

PcapWriter::~PcapWriter() {
    ::close(fd_);
}

void PcapWriter::add(std::int64_t time_ns, Endpoint from, Endpoint to, std::span<const std::byte> head,
                     std::span<const std::byte> body) {
    Headers& h = headers_[packets_++];
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
    // writev takes no const.
    if (!body.empty()) pieces_.push_back({const_cast<std::byte*>(body.data()), body.size()});
}

void PcapWriter::discard() {
    packets_ = 0;
    pieces_.clear();
}

void PcapWriter::flush() {
    const std::size_t packets = std::exchange(packets_, 0);
    const std::uint64_t before = bytes_;
    iovec* next = pieces_.data();
    iovec* const end = next + pieces_.size();
    pieces_.clear();
    while (next != end) {
        const ssize_t got = ::writev(fd_, next, static_cast<int>(end - next));
        if (got < 0) {
            if (errno == EINTR) continue;
            const int error = errno;
            // Back to the last whole flush, so that the file stays readable.
            if (::ftruncate(fd_, static_cast<off_t>(before)) == 0) bytes_ = before;
            throw std::system_error(error, std::generic_category(), file_);
        }
        bytes_ += static_cast<std::uint64_t>(got);
        auto left = static_cast<std::size_t>(got);
        while (next != end && left >= next->iov_len)
            left -= next++->iov_len;
        if (left > 0) {
            next->iov_base = static_cast<std::byte*>(next->iov_base) + left;
            next->iov_len -= left;
        }
    }
    written_ += packets;
}

}  // namespace petacq::net
