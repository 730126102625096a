// The packets of a capture file: pcap and pcapng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/pcap/capture_bytes.hpp"

namespace petacq::net {

/// A file that cannot be used. The message names the file, the packet and what was expected.
class PcapError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CapturedPacket {
    std::int64_t time_ns = 0;  ///< since 1970
    std::uint32_t link_type = 0;
    std::span<const std::byte> bytes;  ///< valid until the next call of next()
    std::size_t missing = 0;           ///< bytes at the end that were not captured
};

/// pcap: micro- or nanoseconds, either byte order. pcapng: any number of sections and interfaces; a simple
/// packet, which has no time, gets that of the packet before. Either may be compressed with gzip. For one
/// thread at a time.
class PacketFile {
  public:
    /// Throws std::system_error if the file cannot be opened, PcapError if it is not a capture, or one of a
    /// kind of network that PcapReader does not know.
    explicit PacketFile(const std::string& file);

    /// The next packet; nothing at the end of the file. Throws PcapError if the file is damaged, ends within
    /// a packet or has become shorter, std::system_error if it cannot be read.
    std::optional<CapturedPacket> next();

    /// Written by petacqd or petsim: each packet is a datagram as it was sent.
    [[nodiscard]] bool is_ours() const { return ours_; }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }              ///< read so far
    [[nodiscard]] std::uint64_t size() const { return content_.size(); }          ///< bytes of the file
    [[nodiscard]] std::uint64_t position() const { return content_.position(); }  ///< bytes read so far
    /// Packets that the capturing program did not get, by what the file says so far; absent: it says nothing
    /// (pcap never does).
    [[nodiscard]] std::optional<std::uint64_t> dropped() const;
    /// Throws PcapError with the name of the file.
    [[noreturn]] void refuse(const std::string& why) const;

  private:
    /// An interface of a pcapng section.
    struct Interface {
        std::uint32_t link_type = 0;
        std::uint32_t snap_length = 0;  // 0: none
        std::uint8_t resolution = 6;    // as option if_tsresol has it
        std::int64_t offset_s = 0;
        std::optional<std::uint64_t> dropped;  // by the latest statistics
    };

    void read_header();
    std::optional<CapturedPacket> next_record();
    std::optional<CapturedPacket> next_block();
    std::optional<CapturedPacket> packet_of(std::uint32_t type, std::span<const std::byte> body);
    void read_section();
    void read_interface(std::span<const std::byte> body);
    void read_statistics(std::span<const std::byte> body);
    [[nodiscard]] std::uint64_t u64(const std::byte* at) const;
    [[nodiscard]] const Interface& interface(std::size_t index) const;
    [[nodiscard]] std::uint16_t u16(const std::byte* at) const;
    [[nodiscard]] std::uint32_t u32(const std::byte* at) const;
    [[nodiscard]] std::string place() const;

    std::string file_;
    CaptureBytes content_;
    std::uint64_t packets_ = 0;
    bool swapped_ = false;
    bool ours_ = false;
    bool blocks_ = false;            // pcapng
    std::uint32_t fraction_ns_ = 1;  // pcap: nanoseconds in a unit of the fraction
    std::uint32_t link_type_ = 0;    // pcap
    std::vector<Interface> interfaces_;
    std::optional<std::uint64_t> dropped_before_;  // in the sections before
    std::int64_t time_ns_ = 0;                     // of the latest packet
};

}  // namespace petacq::net
