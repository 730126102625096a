// Captures written and read back.
#include <random>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/capture_out.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

TEST_CASE("pcap: packets that are written are read back") {
    const PcapFile file;
    std::mt19937_64 random(4);
    std::vector<Bytes> heads;
    std::vector<Bytes> bodies;
    for (const std::size_t size : {0, 1, 15, 16, 1456, 65491}) {
        for (const std::size_t head : {0, 16}) {
            heads.push_back(random_bytes(head, random));
            bodies.push_back(random_bytes(size, random));
        }
    }
    {
        CaptureOut out(file.name());
        for (std::size_t round = 0; round < 100; ++round) {
            for (std::size_t i = 0; i < bodies.size(); ++i) {
                const auto time = static_cast<std::int64_t>(1'700'000'000'123'456'789 + round * 1000 + i);
                out.add(time, {0x0A000005, static_cast<std::uint16_t>(i)}, {0x7F000001, 9601}, heads[i],
                        bodies[i]);
            }
        }
    }
    const std::vector<Read> all = read_all(file.name());
    REQUIRE(all.size() == 100 * bodies.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
        const std::size_t i = n % bodies.size();
        Bytes whole = heads[i];
        append(whole, bodies[i]);
        REQUIRE(all[n].payload == whole);
        REQUIRE(all[n].datagram.from == Endpoint{0x0A000005, static_cast<std::uint16_t>(i)});
        REQUIRE(all[n].datagram.to == Endpoint{0x7F000001, 9601});
        REQUIRE(all[n].datagram.time_ns ==
                static_cast<std::int64_t>(1'700'000'000'123'456'789 + n / bodies.size() * 1000 + i));
    }
}

TEST_CASE("a capture keeps the addresses of IPv6 senders") {
    const PcapFile file;
    const Endpoint six{net::parse_address("fd00::2", "test"), 9602};
    const Endpoint any{net::parse_address("::", "test"), 9601};
    const Endpoint four{0x0A000005, 9603};
    std::mt19937_64 random(5);
    const Bytes head = random_bytes(16, random);
    const Bytes body = random_bytes(1456, random);
    {
        CaptureOut out(file.name());
        out.add(1, six, any, head, body);
        out.add(2, four, any, head, body);
    }
    const std::vector<Read> all = read_all(file.name());
    REQUIRE(all.size() == 2);
    CHECK(net::to_text(all[0].datagram.from) == "[fd00::2]:9602");
    CHECK(net::to_text(all[0].datagram.to) == "[::]:9601");
    CHECK(net::to_text(all[1].datagram.from) == "10.0.0.5:9603");
    for (const Read& one : all)
        CHECK(one.payload.size() == head.size() + body.size());
}
