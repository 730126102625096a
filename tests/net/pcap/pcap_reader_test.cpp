// Captures of every kind that tcpdump makes.
#include <unistd.h>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

TEST_CASE("pcap: every kind of packet that tcpdump makes") {
    const Bytes payload = some_payload(100);
    const Bytes packet = ip(udp(9601, payload));
    std::vector<Kind> kinds = kinds_of(packet);
    kinds.push_back({"IP options", 101, ip(udp(9601, payload), 7, 0, false, 17, 8)});
    for (const Kind& kind : kinds) {
        for (const bool swapped : {false, true}) {
            for (const std::uint32_t magic : {0xA1B2C3D4U, 0xA1B23C4DU}) {
                INFO(kind.name << (swapped ? ", swapped" : "") << ", magic " << magic);
                PcapBuilder builder(magic, kind.link, swapped);
                builder.packet(1'700'000'000, 345'678, kind.bytes, kind.bytes.size());
                const PcapFile file;
                file.write(builder.bytes());
                const std::vector<Read> all = read_all(file.name());
                REQUIRE(all.size() == 1);
                CHECK(all[0].payload == payload);
                CHECK(all[0].datagram.from == Endpoint{0x0A000005, 40001});
                CHECK(all[0].datagram.to == Endpoint{0x0A000001, 9601});
                CHECK(all[0].datagram.time_ns ==
                      1'700'000'000'000'000'000 + (magic == 0xA1B2C3D4U ? 345'678'000 : 345'678));
            }
        }
    }
}

TEST_CASE("pcap: other packets are skipped and counted") {
    PcapBuilder builder(0xA1B2C3D4, 101);
    builder.packet(ip(udp(9601, some_payload(32))));
    builder.packet(ip(udp(53, some_payload(32))));                  // another port
    builder.packet(ip(some_payload(40), 7, 0, false, 6));           // TCP
    builder.packet(with_front({0x60, 0, 0, 0}, some_payload(60)));  // IPv6
    builder.packet(some_payload(3));                                // no header
    builder.packet(ip(Bytes(4)));                                   // incomplete UDP header
    builder.packet({});
    const PcapFile file;
    file.write(builder.bytes());
    PcapCounts counts;
    CHECK(read_all(file.name(), {9601}, &counts).size() == 1);
    CHECK(counts.packets == 7);
    CHECK(counts.datagrams == 1);
    CHECK(counts.other() == 6);
    CHECK(read_all(file.name()).size() == 2);
}

TEST_CASE("pcap: a packet of which little was captured is skipped, whatever its kind") {
    // The file fills a whole page, so that reading behind the last packet faults.
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const Bytes packet = ip(udp(9601, some_payload(32)));
    for (const Kind& kind : kinds_of(packet)) {
        const std::size_t headers = kind.bytes.size() - (kind.name == "padded Ethernet" ? 7 : 0) - 32;
        for (std::size_t captured = 0; captured <= kind.bytes.size(); ++captured) {
            INFO(kind.name << ", " << captured << " bytes");
            PcapBuilder builder(0xA1B2C3D4, kind.link);
            constexpr std::size_t record = 16;
            const Bytes filling(page - builder.bytes().size() - 2 * record - captured);
            builder.packet(filling);
            builder.packet(1, 2, kind.bytes, captured);
            REQUIRE(builder.bytes().size() == page);
            const PcapFile file;
            file.write(builder.bytes());
            PcapReader reader(file.name(), {});
            CapturedDatagram d;
            if (captured < headers) {
                REQUIRE_FALSE(reader.next(d));
                REQUIRE(reader.counts().other() == 2);
            } else if (captured < headers + 32) {
                REQUIRE_THROWS_AS(reader.next(d), PcapError);  // the snap length
            } else {
                REQUIRE(reader.next(d));
                REQUIRE(d.payload.size() == 32);
                REQUIRE(reader.counts().other() == 1);
            }
        }
    }
}

TEST_CASE("pcap: packets other than IPv4 are counted as other, whatever the link") {
    const Bytes packet = ip(udp(9601, some_payload(32)));
    const std::vector<Kind> kinds{
        {"ARP", 1, with_front({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 6}, packet)},
        {"cooked IPv6", 113, with_front({0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xDD}, packet)},
        {"cooked 2 IPv6", 276,
         with_front({0x86, 0xDD, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, packet)},
        {"BSD loopback IPv6", 0, with_front({30, 0, 0, 0}, packet)},
    };
    for (const Kind& kind : kinds) {
        INFO(kind.name);
        PcapBuilder builder(0xA1B2C3D4, kind.link);
        builder.packet(kind.bytes);
        const PcapFile file;
        file.write(builder.bytes());
        PcapCounts counts;
        CHECK(read_all(file.name(), {}, &counts).empty());
        CHECK(counts.packets == 1);
        CHECK(counts.other() == 1);
    }
}
