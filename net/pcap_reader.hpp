// Reads the UDP datagrams of a pcap file: captures of petacqd and of tcpdump.
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

/// A file that cannot be used. The message names the file, the packet and what was expected.
class PcapError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CapturedDatagram {
    std::int64_t time_ns = 0;  ///< since 1970
    Endpoint from;
    Endpoint to;
    /// The UDP payload; valid until the next call of next().
    std::span<const std::byte> payload;
};

/// The contents of a file. packets = datagrams + other + fragments that did not complete a datagram.
struct PcapCounts {
    std::uint64_t packets = 0;
    std::uint64_t datagrams = 0;  ///< UDP over IPv4, returned by next()
    std::uint64_t other = 0;      ///< other protocols, other ports, damaged headers
    std::uint64_t fragments = 0;  ///< of IP packets
    std::uint64_t fragments_incomplete =
        0;  ///< packets given up because a fragment was missing or did not fit
};

/// Reads files with micro- or nanoseconds, of either byte order, that hold Ethernet (also with VLAN tags),
/// Linux cooked (1 and 2), BSD loopback or raw IP packets. Maps the file. For one thread at a time.
class PcapReader {
  public:
    /// `ports`: destination ports to return; empty: all. Throws std::system_error if the file cannot be
    /// opened, PcapError if it is not such a capture.
    PcapReader(const std::string& file, std::vector<std::uint16_t> ports);
    ~PcapReader();
    PcapReader(const PcapReader&) = delete;
    PcapReader& operator=(const PcapReader&) = delete;

    /// Finds the next datagram; false at the end of the file. Throws PcapError if the snap length cut a
    /// requested datagram short, and if the file is damaged or ends within a packet.
    bool next(CapturedDatagram& out);

    [[nodiscard]] const PcapCounts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }    ///< bytes of the file
    [[nodiscard]] std::uint64_t position() const { return at_; }  ///< bytes read so far
    [[nodiscard]] const std::string& file() const { return file_; }

  private:
    /// A packet of which fragments are missing.
    struct Fragments {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        std::uint16_t identification = 0;
        std::int64_t first_ns = 0;  // time of the fragment that was captured first
        std::size_t distance = 0;   // fragments of other packets of the sender since the latest
        std::vector<std::byte> bytes;
        std::vector<bool> present;          // for each 8 bytes
        std::size_t missing = 0;            // bytes cut off by the snap length
        std::optional<std::size_t> length;  // known from the last fragment
    };

    void read_header();
    [[nodiscard]] std::uint16_t in_order(std::uint16_t v) const;
    [[nodiscard]] std::uint32_t in_order(std::uint32_t v) const;
    [[noreturn]] void refuse(const std::string& why) const;
    [[nodiscard]] std::optional<std::size_t> ip_offset(std::span<const std::byte> packet) const;
    bool take_ip(std::span<const std::byte> packet, std::size_t missing, CapturedDatagram& out);
    bool take_udp(std::span<const std::byte> udp, std::size_t missing, CapturedDatagram& out);
    void give_up_stale(const CapturedDatagram& now);
    Fragments& fragments_of(std::uint16_t identification, const CapturedDatagram& packet);
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
    std::vector<std::byte> assembled_;  // the datagram returned last, if it came in fragments
};

}  // namespace petacq::net
