// IP fragments in captures: joined, or given up and counted.
#include <algorithm>
#include <random>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

TEST_CASE("pcap: IP fragments of many packets are joined in any order") {
    std::mt19937_64 random(9);
    std::vector<Bytes> payloads;
    struct Part {
        std::uint16_t identification;
        std::size_t offset;
        Bytes bytes;
        bool more;
    };
    std::vector<Part> parts;
    for (std::uint16_t id = 0; id < 20; ++id) {
        payloads.push_back(random_bytes(1 + random() % 9000, random));
        const Bytes whole = udp(9601, payloads.back());
        for (std::size_t at = 0; at < whole.size(); at += 1480) {
            const std::size_t end = std::min(at + 1480, whole.size());
            parts.push_back({id, at,
                             Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                   whole.begin() + static_cast<std::ptrdiff_t>(end)),
                             end < whole.size()});
        }
    }
    std::shuffle(parts.begin(), parts.end(), random);
    parts.push_back({99, 1480, Bytes(16), false});  // its first fragment never comes
    PcapBuilder builder(0xA1B2C3D4, 101);
    for (const Part& p : parts)
        builder.packet(ip(p.bytes, p.identification, p.offset, p.more));
    const PcapFile file;
    file.write(builder.bytes());
    PcapCounts counts;
    const std::vector<Read> all = read_all(file.name(), {9601}, &counts);
    REQUIRE(all.size() == payloads.size());
    for (const Bytes& payload : payloads)
        CHECK(std::count_if(all.begin(), all.end(), [&](const Read& r) { return r.payload == payload; }) ==
              1);
    CHECK(counts.fragments_incomplete == 1);
}

TEST_CASE("pcap: a packet that lost a fragment is not mixed with a later one of the same identification") {
    const Bytes first = udp(9601, some_payload(3000, 1));
    const Bytes second = udp(9601, some_payload(3000, 2));
    const auto part = [](const Bytes& whole, int i, std::uint16_t identification) {
        const auto at = static_cast<std::size_t>(i) * 1480;
        const std::size_t end = std::min(at + 1480, whole.size());
        return ip(Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                        whole.begin() + static_cast<std::ptrdiff_t>(end)),
                  identification, at, end < whole.size());
    };
    // `between` fragments of other packets, then a pause of `seconds`, then the second packet.
    const auto read = [&](int lost, int between, std::uint32_t seconds, PcapCounts& counts) {
        PcapBuilder builder(0xA1B2C3D4, 101);
        const auto add = [&](std::uint32_t at, const Bytes& packet) {
            builder.packet(at, 0, packet, packet.size());
        };
        for (int i = 0; i < 3; ++i) {
            if (i != lost) add(1000, part(first, i, 7));
        }
        for (int i = 0; i < between; ++i)
            add(1000, part(second, i % 3, static_cast<std::uint16_t>(100 + i / 3)));
        for (int i = 0; i < 3; ++i)
            add(1000 + seconds, part(second, i, 7));
        const PcapFile file;
        file.write(builder.bytes());
        const std::vector<Read> all = read_all(file.name(), {9601}, &counts);
        for (const Read& r : all)
            CHECK(r.payload == some_payload(3000, 2));
        return all.size();
    };
    for (const int lost : {0, 1, 2}) {
        INFO("lost " << lost);
        PcapCounts counts;
        CHECK(read(lost, 66, 0, counts) == 23);
        CHECK(counts.fragments_incomplete == 1);
        CHECK(read(lost, 0, 31, counts) == 1);
        CHECK(counts.fragments_incomplete == 1);
    }
    // Within both limits they belong to one packet, as for the kernel.
    PcapBuilder builder(0xA1B2C3D4, 101);
    const auto add = [&](std::uint32_t at, const Bytes& packet) {
        builder.packet(at, 0, packet, packet.size());
    };
    add(1000, part(first, 0, 7));
    for (int i = 0; i < 63; ++i)
        add(1010, part(second, i % 3, static_cast<std::uint16_t>(100 + i / 3)));
    add(1029, part(first, 2, 7));
    add(1030, part(first, 2, 7));  // twice
    add(1030, part(first, 1, 7));
    // A partial overlap means another packet.
    add(1030, part(first, 0, 8));
    add(1030, ip(Bytes(1480), 8, 1472, true));
    const PcapFile file;
    file.write(builder.bytes());
    PcapCounts counts;
    const std::vector<Read> all = read_all(file.name(), {9601}, &counts);
    REQUIRE(all.size() == 22);
    CHECK(all.back().payload == some_payload(3000, 1));
    CHECK(counts.fragments_incomplete == 1);
}
