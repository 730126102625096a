// Reads the UDP datagrams of a capture: those of petacqd, tcpdump and Wireshark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/endpoint.hpp"
#include "net/pcap/packet_file.hpp"

namespace petacq::net {

struct CapturedDatagram {
    std::int64_t time_ns = 0;  ///< since 1970
    Endpoint from;
    Endpoint to;
    /// The UDP payload; valid until the next call of next().
    std::span<const std::byte> payload;
};

// Why packets are not used: name and what they are.
#define PETACQ_UNUSED_PACKETS(X)             \
    X(other_port, "for other ports")         \
    X(not_udp, "not UDP")                    \
    X(not_ip, "not IP")                      \
    X(tunnel, "in tunnels of unknown kinds") \
    X(cut_short, "cut within their headers") \
    X(damaged, "with headers that make no sense")

/// The contents of a file. packets = datagrams + other() + fragments that did not complete a datagram.
struct PcapCounts {
    std::uint64_t packets = 0;
    std::uint64_t datagrams = 0;  ///< returned by next()
#define PETACQ_DECLARE(name, text) std::uint64_t name = 0;
    PETACQ_UNUSED_PACKETS(PETACQ_DECLARE)
#undef PETACQ_DECLARE
    std::uint64_t fragments = 0;  ///< of IP packets
    std::uint64_t fragments_incomplete =
        0;  ///< packets given up because a fragment was missing or did not fit

    /// Packets that are not used.
    [[nodiscard]] std::uint64_t other() const {
        std::uint64_t sum = 0;
#define PETACQ_ADD(name, text) sum += (name);
        PETACQ_UNUSED_PACKETS(PETACQ_ADD)
#undef PETACQ_ADD
        return sum;
    }
    PcapCounts& operator+=(const PcapCounts& more);
};

/// "12 for other ports, 3 not UDP, 1 with missing fragments"; empty if everything is used.
std::string unused_text(const PcapCounts& counts);

/// Reads files (packet_file.hpp) that hold Ethernet (also with VLAN tags), Linux cooked (1 and 2), BSD
/// loopback or raw IP packets. Packets in VXLAN, GRE or ERSPAN, as switches mirror them, are taken out of it.
/// For one thread at a time.
class PcapReader {
  public:
    /// `ports`: destination ports to return; empty: all. Throws std::system_error if the file cannot be
    /// opened, PcapError if it is not such a capture.
    PcapReader(const std::string& file, std::vector<std::uint16_t> ports);

    /// Finds the next datagram; false at the end of the file. Throws PcapError if the snap length cut a
    /// requested datagram short, and if the file is damaged or ends within a packet.
    bool next(CapturedDatagram& out);

    [[nodiscard]] const PcapCounts& counts() const { return counts_; }
    /// Packets that the capturing program did not get, by what the file says; absent: it says nothing.
    [[nodiscard]] std::optional<std::uint64_t> dropped() const { return file_.dropped(); }
    [[nodiscard]] std::uint64_t size() const { return file_.size(); }          ///< bytes of the file
    [[nodiscard]] std::uint64_t position() const { return file_.position(); }  ///< bytes read so far
    /// A packet is never several datagrams that the kernel has coalesced.
    [[nodiscard]] bool is_one_datagram_each() const { return file_.is_ours(); }

  private:
    /// A packet of which fragments are missing.
    struct Fragments {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        std::uint32_t identification = 0;
        std::int64_t first_ns = 0;  // time of the fragment that was captured first
        std::size_t distance = 0;   // fragments of other packets of the sender since the latest
        std::vector<std::byte> bytes;
        std::vector<bool> present;          // for each 8 bytes
        std::size_t missing = 0;            // bytes cut off by the snap length
        std::optional<std::size_t> length;  // known from the last fragment
    };

    /// A piece of a packet, as captured.
    struct PacketBytes {
        std::span<const std::byte> bytes;
        std::size_t missing = 0;  // bytes behind them that were not captured

        [[nodiscard]] PacketBytes behind(std::size_t header) const {
            return {bytes.subspan(header), missing};
        }
    };

    // True if `out` is a complete datagram; else what was taken is counted.
    bool take_link(std::uint32_t link_type, PacketBytes packet, CapturedDatagram& out);
    bool take_network(std::uint16_t type, PacketBytes packet, CapturedDatagram& out);
    bool take_ip(PacketBytes packet, CapturedDatagram& out);
    bool take_ipv6(PacketBytes packet, CapturedDatagram& out);
    bool take_transport(std::uint8_t protocol, PacketBytes body, CapturedDatagram& out);
    bool take_udp(PacketBytes udp, CapturedDatagram& out);
    bool take_gre(PacketBytes gre, CapturedDatagram& out);
    bool skip(std::uint64_t& kind);
    bool skip_short(const PacketBytes& piece);
    void give_up_stale(const CapturedDatagram& now);
    Fragments& fragments_of(std::uint32_t identification, const CapturedDatagram& packet);
    bool join(std::uint8_t protocol, PacketBytes part, std::size_t offset, bool last,
              std::uint32_t identification, CapturedDatagram& out);

    PacketFile file_;
    std::vector<std::uint16_t> ports_;  // sorted
    PcapCounts counts_;
    int depth_ = 0;                     // of tunnels
    std::list<Fragments> waiting_;      // the oldest first; few
    std::vector<std::byte> assembled_;  // the datagram returned last, if it came in fragments
};

}  // namespace petacq::net
