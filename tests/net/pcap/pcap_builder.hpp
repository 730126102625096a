// Captures built by hand, and reading them back.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/loopback.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// The path of a capture in a directory of its own.
class PcapFile {
  public:
    [[nodiscard]] std::string name() const { return (directory_ / "capture.pcap").string(); }
    void write(const Bytes& bytes) const {
        write_file(name(), std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }

  private:
    TemporaryDirectory directory_;
};

/// Builds captures byte by byte from the description of the format, without the code under test.
class PcapBuilder {
  public:
    PcapBuilder(std::uint32_t magic, std::uint32_t link_type, bool swapped = false) : swapped_(swapped) {
        u32(magic);
        u16(2);
        u16(4);
        u32(0);
        u32(0);
        u32(65535);
        u32(link_type);
    }
    void packet(std::uint32_t seconds, std::uint32_t fraction, const Bytes& bytes, std::size_t captured) {
        u32(seconds);
        u32(fraction);
        u32(static_cast<std::uint32_t>(captured));
        u32(static_cast<std::uint32_t>(bytes.size()));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(captured));
    }
    void packet(const Bytes& bytes) { packet(1, 2, bytes, bytes.size()); }
    [[nodiscard]] const Bytes& bytes() const { return bytes_; }

  private:
    void u16(std::uint16_t v) { put(v, 2); }
    void u32(std::uint32_t v) { put(v, 4); }
    void put(std::uint32_t v, int size) {
        for (int i = 0; i < size; ++i) {
            const int shift = 8 * (swapped_ ? size - 1 - i : i);
            bytes_.push_back(static_cast<std::byte>(v >> shift & 0xFF));
        }
    }
    bool swapped_;
    Bytes bytes_;
};

inline void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
}
inline void big16(Bytes& to, std::size_t v) {
    to.push_back(static_cast<std::byte>(v >> 8 & 0xFF));
    to.push_back(static_cast<std::byte>(v & 0xFF));
}

/// A UDP packet from port 40001.
inline Bytes udp(std::uint16_t to_port, const Bytes& payload) {
    Bytes out;
    big16(out, 40001);
    big16(out, to_port);
    big16(out, 8 + payload.size());
    big16(out, 0);
    append(out, payload);
    return out;
}

/// An IPv4 packet, or a fragment of one, from 10.0.0.5 to 10.0.0.1.
inline Bytes ip(const Bytes& body, std::uint16_t identification = 7, std::size_t offset = 0,
                bool more = false, unsigned protocol = 17, std::size_t options = 0) {
    Bytes out{static_cast<std::byte>(0x45 + options / 4), std::byte{0}};
    big16(out, 20 + options + body.size());
    big16(out, identification);
    big16(out, offset / 8 | (more ? 0x2000U : 0U));
    out.push_back(std::byte{64});
    out.push_back(static_cast<std::byte>(protocol));
    big16(out, 0);
    for (const unsigned b : {10U, 0U, 0U, 5U, 10U, 0U, 0U, 1U})
        out.push_back(static_cast<std::byte>(b));
    out.resize(out.size() + options);
    append(out, body);
    return out;
}

inline Bytes with_front(std::initializer_list<unsigned> front, const Bytes& rest) {
    Bytes out;
    for (const unsigned b : front)
        out.push_back(static_cast<std::byte>(b));
    append(out, rest);
    return out;
}

/// A datagram that was read, with a copy of its payload.
struct Read {
    net::CapturedDatagram datagram;
    Bytes payload;
};

inline std::vector<Read> read_all(const std::string& name, std::vector<std::uint16_t> ports = {},
                                  net::PcapCounts* counts = nullptr) {
    net::PcapReader reader(name, std::move(ports));
    std::vector<Read> all;
    net::CapturedDatagram d;
    while (reader.next(d))
        all.push_back({d, Bytes(d.payload.begin(), d.payload.end())});
    if (counts != nullptr) *counts = reader.counts();
    return all;
}

/// Why the file is refused; "" if it is read to its end.
inline std::string refusal(const std::string& name) {
    try {
        (void)read_all(name);
    } catch (const net::PcapError& e) {
        return e.what();
    }
    return "";
}

inline Bytes some_payload(std::size_t size, unsigned seed = 1) {
    std::mt19937_64 random(seed);
    return random_bytes(size, random);
}

/// A packet and the link type of the capture that holds it.
struct Kind {
    std::string name;
    std::uint32_t link;
    Bytes bytes;
};

/// The IP packet inside a link-layer packet of every kind.
inline std::vector<Kind> kinds_of(const Bytes& packet) {
    const Bytes front = some_payload(12);
    const auto ethernet = [&](std::initializer_list<unsigned> type) {
        Bytes out = front;
        append(out, with_front(type, packet));
        return out;
    };
    Bytes padded = ethernet({8, 0});
    padded.resize(padded.size() + 7);
    return {
        {"Ethernet", 1, ethernet({8, 0})},
        {"padded Ethernet", 1, padded},
        {"VLAN", 1, ethernet({0x81, 0, 0, 5, 8, 0})},
        {"two VLANs", 1, ethernet({0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 8, 0})},
        {"cooked", 113, with_front({0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0}, packet)},
        {"cooked 2", 276, with_front({8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, packet)},
        {"BSD loopback", 0, with_front({2, 0, 0, 0}, packet)},
        {"BSD loopback, big-endian", 0, with_front({0, 0, 0, 2}, packet)},
        {"raw", 101, packet},
        {"IPv4", 228, packet},
    };
}

}  // namespace petacq::test
