// Writes UDP datagrams to a pcap file that Wireshark and tcpdump open: nanosecond times, raw IPv4 packets.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/endpoint.hpp"

namespace petacq::net {

/// One thread at a time. Payloads are not copied: they stay where they are until flush().
class PcapWriter {
  public:
    static constexpr std::size_t max_packets = 256;  ///< between two flushes

    /// Makes the file, which must not exist. Throws std::system_error naming it.
    explicit PcapWriter(const std::string& file);
    /// Without flush: what was added after the last one is not in the file.
    ~PcapWriter();
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;

    /// Room for one more datagram before flush() has to be called.
    [[nodiscard]] bool has_room() const { return packets_ < max_packets; }
    /// A datagram whose payload is `head` followed by `body`; `head` (at most 16 bytes) is copied, `body` is
    /// not. `time_ns` is since 1970. When there is room.
    void add(std::int64_t time_ns, Endpoint from, Endpoint to, std::span<const std::byte> head,
             std::span<const std::byte> body);
    /// Writes what was added. Throws std::system_error; then nothing added since the last flush is in the
    /// file, which ends at a whole packet if the file system allows.
    void flush();
    /// Forgets what was added.
    void discard();

    [[nodiscard]] std::uint64_t packets_written() const { return written_; }
    [[nodiscard]] std::uint64_t bytes_written() const { return bytes_; }

  private:
    struct Headers;
    std::string file_;
    int fd_;
    std::unique_ptr<Headers[]> headers_;
    std::vector<iovec> pieces_;
    std::size_t packets_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace petacq::net
