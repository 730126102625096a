// Mirrored ports: packets in VXLAN, GRE and ERSPAN; and what of a capture is not used, by kind.
#include <string>
#include <vector>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

namespace {

Bytes ethernet(const Bytes& packet) {
    return with_front({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0, 0, 5, 8, 0}, packet);
}

Bytes vxlan(const Bytes& packet, std::uint16_t port = 4789) {
    return ip(udp(port, with_front({8, 0, 0, 0, 0, 0, 77, 0}, ethernet(packet))));
}

Bytes gre(std::initializer_list<unsigned> header, const Bytes& inner) {
    return ip(with_front(header, inner), 7, 0, false, 47);
}

std::vector<Read> read_packets(const std::vector<Bytes>& packets, const std::vector<std::uint16_t>& ports,
                               PcapCounts& counts) {
    PcapBuilder builder(0xA1B2C3D4, 101);
    for (const Bytes& packet : packets)
        builder.packet(packet);
    const PcapFile file;
    file.write(builder.bytes());
    return read_all(file.name(), ports, &counts);
}

}  // namespace

TEST_CASE("pcap: mirrored packets are taken out of their tunnels") {
    const Bytes payload = some_payload(64);
    const Bytes inner = ip(udp(9601, payload));
    struct Tunnel {
        std::string name;
        Bytes packet;
    };
    const std::vector<Tunnel> tunnels{
        {"VXLAN", vxlan(inner)},
        {"VXLAN at the old port", vxlan(inner, 8472)},
        {"VXLAN in VXLAN", vxlan(vxlan(inner))},
        {"GRE of IP", gre({0, 0, 8, 0}, inner)},
        {"GRE of Ethernet with a key", gre({0x20, 0, 0x65, 0x58, 0, 0, 0, 1}, ethernet(inner))},
        {"ERSPAN I", gre({0, 0, 0x88, 0xBE}, ethernet(inner))},
        {"ERSPAN II", gre({0x10, 0, 0x88, 0xBE, 0, 0, 0, 1, 0x10, 5, 0, 1, 0, 0, 0, 0}, ethernet(inner))},
        {"ERSPAN III",
         gre({0x10, 0, 0x22, 0xEB, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, ethernet(inner))},
        {"ERSPAN III with more",
         gre({0x10, 0, 0x22, 0xEB, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9},
             ethernet(inner))},
    };
    for (const Tunnel& tunnel : tunnels) {
        for (const std::vector<std::uint16_t>& ports : {std::vector<std::uint16_t>{9601}, {}}) {
            INFO(tunnel.name);
            PcapCounts counts;
            const std::vector<Read> all = read_packets({tunnel.packet}, ports, counts);
            REQUIRE(all.size() == 1);
            CHECK(all[0].payload == payload);
            CHECK(all[0].datagram.to == Endpoint{0x0A000001, 9601});
            CHECK(counts.other() == 0);
        }
    }
    // A tunnel in fragments.
    const Bytes whole = vxlan(inner);
    const Bytes body(whole.begin() + 20, whole.end());
    const Bytes first(body.begin(), body.begin() + 80);
    const Bytes second(body.begin() + 80, body.end());
    PcapCounts counts;
    const std::vector<Read> joined = read_packets({ip(first, 9, 0, true), ip(second, 9, 80)}, {9601}, counts);
    REQUIRE(joined.size() == 1);
    CHECK(joined[0].payload == payload);
    // A port of the daemon is its own, whatever arrives there.
    CHECK(read_packets({whole}, {4789}, counts)[0].payload.size() == 8 + 18 + inner.size());
}

TEST_CASE("pcap: packets that are not used are counted by kind") {
    Bytes without_end = ip(udp(9601, some_payload(32)));
    without_end.resize(23);
    PcapBuilder builder(0xA1B2C3D4, 1);
    const auto packet = [&](std::initializer_list<unsigned> type, const Bytes& body) {
        Bytes bytes(12);
        append(bytes, with_front(type, body));
        builder.packet(bytes);
        return bytes;
    };
    packet({8, 0}, ip(udp(9601, some_payload(32))));
    packet({8, 0}, ip(udp(53, some_payload(32))));
    packet({8, 0}, ip(udp(54, some_payload(32))));
    packet({8, 0}, ip(some_payload(40), 7, 0, false, 6));
    packet({8, 6}, some_payload(28));                           // ARP
    packet({8, 0}, gre({0, 0, 0x88, 0x0B}, some_payload(28)));  // PPP in GRE
    packet({8, 0}, with_front({0x50}, some_payload(40)));       // not version 4
    packet({8, 0}, ip(Bytes(some_payload(16)), 8, 0, true));    // of a packet whose end is missing
    const Bytes cut = packet({8, 0}, ip(udp(9602, some_payload(32))));
    builder.packet(1, 2, cut, 30);
    const PcapFile file;
    file.write(builder.bytes());
    PcapCounts counts;
    CHECK(read_all(file.name(), {9601}, &counts).size() == 1);
    CHECK(unused_text(counts) ==
          "3 for other ports, 1 not UDP, 1 not IP, 1 in tunnels of unknown kinds, 1 cut within their "
          "headers, 1 "
          "with headers that make no sense, 1 with missing fragments");
    CHECK(counts.packets == counts.datagrams + counts.other() + counts.fragments);
}
