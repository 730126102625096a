// Formats UDP datagrams as packets of a pcap file: nanosecond times, raw IPv4.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/endpoint.hpp"

namespace petacq::net {

/// The header of a pcap file, with a mark that each packet is a datagram as it was sent.
std::array<std::byte, 24> pcap_file_header();

/// The packets of one write. Payloads are not copied: they must stay where they are until clear(). One thread
/// at a time.
class PcapPackets {
  public:
    static constexpr std::size_t max_packets = 256;

    PcapPackets();
    ~PcapPackets();
    PcapPackets(const PcapPackets&) = delete;
    PcapPackets& operator=(const PcapPackets&) = delete;

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool full() const { return size_ == max_packets; }
    /// Adds a datagram whose payload is `head` (copied, at most 16 bytes) followed by `body` (not copied).
    /// `time_ns` is since 1970. Not when full.
    void add(std::int64_t time_ns, Endpoint from, Endpoint to, std::span<const std::byte> head,
             std::span<const std::byte> body);
    /// The packets as they follow one another in the file. The writer may change the span's content.
    [[nodiscard]] std::span<iovec> pieces() { return pieces_; }
    void clear();

  private:
    struct Headers;
    std::unique_ptr<Headers[]> headers_;
    std::vector<iovec> pieces_;
    std::size_t size_ = 0;
};

}  // namespace petacq::net
