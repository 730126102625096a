// Reads the UDP datagrams of a pcap file: our captures, and those that tcpdump made on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/endpoint.hpp"

namespace petacq::net {

/// A file that cannot be used; the message names the file, the packet, and what was expected.
class PcapError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CapturedDatagram {
    std::int64_t time_ns = 0;  ///< since 1970
    Endpoint from;
    Endpoint to;
    /// Bytes of the UDP payload; they stay until the next datagram is asked for.
    std::span<const std::byte> payload;
};

/// What a file held. packets = datagrams + fragments joined into one + other.
struct PcapCounts {
    std::uint64_t packets = 0;
    std::uint64_t datagrams = 0;  ///< UDP over IPv4, given out
    std::uint64_t other = 0;      ///< other protocols, ports that were not asked for, damaged headers
    std::uint64_t fragments = 0;  ///< of IP packets
    std::uint64_t fragments_incomplete = 0;  ///< packets given up: a fragment was missing, or did not fit
};

/// Reads micro- and nanosecond files of either byte order with Ethernet (VLAN tags too), Linux cooked (1 and
/// 2), BSD loopback or raw IP packets. The file is mapped. One thread at a time.
class PcapReader {
  public:
    /// `ports`: destinations that are wanted; empty: all. Throws std::system_error when the file cannot be
    /// opened, PcapError when it is not such a file.
    PcapReader(const std::string& file, std::vector<std::uint16_t> ports);
    ~PcapReader();
    PcapReader(const PcapReader&) = delete;
    PcapReader& operator=(const PcapReader&) = delete;

    /// False at the end of the file. Throws PcapError for a wanted datagram that was cut short by the snap
    /// length, and for a file that is damaged or ends within a packet.
    bool next(CapturedDatagram& out);

    [[nodiscard]] const PcapCounts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }    ///< bytes of the file
    [[nodiscard]] std::uint64_t position() const { return at_; }  ///< bytes gone through
    [[nodiscard]] const std::string& file() const { return file_; }

  private:
    struct Fragments {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        std::uint16_t identification = 0;
        std::int64_t first_ns = 0;  // when its first came
        std::size_t distance = 0;   // fragments of the same sender since its latest
        std::vector<std::byte> bytes;
        std::vector<bool> present;          // of each 8 bytes
        std::size_t missing = 0;            // bytes that were not captured
        std::optional<std::size_t> length;  // once the last fragment has come
    };

    [[nodiscard]] std::uint16_t in_order(std::uint16_t v) const;
    [[nodiscard]] std::uint32_t in_order(std::uint32_t v) const;
    [[noreturn]] void refuse(const std::string& why) const;
    [[nodiscard]] std::optional<std::size_t> ip_offset(std::span<const std::byte> packet) const;
    bool take_ip(std::span<const std::byte> packet, std::size_t missing, CapturedDatagram& out);
    bool take_udp(std::span<const std::byte> udp, std::size_t missing, CapturedDatagram& out);
    void give_up_stale(const CapturedDatagram& now);
    bool join(std::span<const std::byte> part, std::size_t missing, std::size_t offset, bool last,
              std::uint16_t identification, CapturedDatagram& out);

    std::string file_;
    std::vector<std::uint16_t> ports_;  // sorted
    const std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
    std::uint64_t at_ = 0;
    bool swapped_ = false;
    std::uint32_t fraction_ns_ = 1;  // nanoseconds in a unit of the fraction
    std::uint32_t link_type_ = 0;
    PcapCounts counts_;
    std::list<Fragments> waiting_;      // the oldest first; few
    std::vector<std::byte> assembled_;  // the datagram given out last, if it came in fragments
};

}  // namespace petacq::net
