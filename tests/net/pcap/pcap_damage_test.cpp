// Captures that are truncated or damaged, and files that are not captures.
#include <algorithm>
#include <random>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

TEST_CASE("pcap: a snap length that cut datagrams short is named") {
    const Bytes packet = ip(udp(9601, some_payload(1000)));
    PcapBuilder builder(0xA1B2C3D4, 101);
    builder.packet(1, 2, packet, 262);
    const PcapFile file;
    file.write(builder.bytes());
    const std::string why = refusal(file.name());
    CHECK(why.find("snap length") != std::string::npos);
    CHECK(why.find("tcpdump -s 0") != std::string::npos);
    CHECK(why.find(file.name()) == 0);
    // Datagrams to another port do not matter.
    CHECK(read_all(file.name(), {9602}).empty());

    // The same for fragments, of which only the first has a port.
    const Bytes whole = udp(9601, some_payload(3000));
    PcapBuilder fragments(0xA1B2C3D4, 101);
    for (std::size_t at = 0; at < whole.size(); at += 1480) {
        const std::size_t end = std::min(at + 1480, whole.size());
        const Bytes part = ip(Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                    whole.begin() + static_cast<std::ptrdiff_t>(end)),
                              7, at, end < whole.size());
        fragments.packet(1, 2, part, std::min<std::size_t>(part.size(), 262));
    }
    file.write(fragments.bytes());
    CHECK(refusal(file.name()).find("snap length") != std::string::npos);
    CHECK(read_all(file.name(), {9602}).empty());
}

TEST_CASE("pcap: a file that is not a capture is refused with the reason") {
    const PcapFile file;
    const auto refused_as = [&](const Bytes& bytes, const std::string& part) {
        file.write(bytes);
        const std::string why = refusal(file.name());
        INFO(why);
        CHECK(why.find(part) != std::string::npos);
    };
    refused_as({}, "not a pcap file");
    refused_as(Bytes(23), "not a pcap file");
    refused_as(some_payload(500), "not a pcap file");
    refused_as(with_front({0x0A, 0x0D, 0x0D, 0x0A}, Bytes(100)), "a section without a byte order");
    refused_as(PcapBuilder(0xA1B2C3D4, 105).bytes(), "link type 105");
    CHECK_THROWS_AS(PcapReader("/does/not/exist", {}), std::system_error);
    CHECK_THROWS_AS(PcapReader("/", {}), PcapError);
    // An empty capture is valid.
    file.write(PcapBuilder(0xA1B2C3D4, 1).bytes());
    CHECK(read_all(file.name()).empty());
}

TEST_CASE("pcap: a capture truncated at any byte gives its whole packets, and the reason") {
    PcapBuilder builder(0xA1B23C4D, 101);
    std::vector<std::size_t> ends{builder.bytes().size()};
    for (unsigned i = 0; i < 5; ++i) {
        builder.packet(ip(udp(9601, some_payload(i * 13, i))));
        ends.push_back(builder.bytes().size());
    }
    const PcapFile file;
    for (std::size_t size = ends[0]; size <= builder.bytes().size(); ++size) {
        file.write(
            Bytes(builder.bytes().begin(), builder.bytes().begin() + static_cast<std::ptrdiff_t>(size)));
        const auto whole = static_cast<std::size_t>(
            std::count_if(ends.begin() + 1, ends.end(), [&](std::size_t e) { return e <= size; }));
        PcapReader reader(file.name(), {});
        CapturedDatagram d;
        std::size_t read = 0;
        std::string why;
        try {
            while (reader.next(d))
                ++read;
        } catch (const PcapError& e) {
            why = e.what();
        }
        REQUIRE(read == whole);
        const bool at_end = std::find(ends.begin(), ends.end(), size) != ends.end();
        REQUIRE(why.empty() == at_end);
        if (!at_end) REQUIRE(why.find("cut") != std::string::npos);
    }
}

TEST_CASE("pcap: damaged bits and short packets at most end the reading") {
    std::mt19937_64 random(77);
    const std::vector<Kind> kinds = kinds_of({});
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        INFO(kinds[k].name);
        const PcapFile file;
        for (int round = 0; round < 150; ++round) {
            PcapBuilder builder(0xA1B23C4D, kinds[k].link, round % 2 == 0);
            for (unsigned i = 0; i < 6; ++i) {
                // The fourth and fifth are fragments.
                const Bytes whole =
                    kinds_of(ip(udp(9601, some_payload(64 + i, i)), 3, i == 4 ? 8 : 0, i == 3))[k].bytes;
                const std::size_t captured = random() % 3 == 0 ? random() % (whole.size() + 1) : whole.size();
                // Also packets that were short on the wire, not only cut by the snap length.
                if (random() % 2 == 0) {
                    builder.packet(
                        Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(captured)));
                } else {
                    builder.packet(1, 2, whole, captured);
                }
            }
            Bytes bytes = builder.bytes();
            for (auto flips = static_cast<int>(random() % 5); flips > 0; --flips)
                bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
            file.write(bytes);
            try {
                PcapReader reader(file.name(), {});
                CapturedDatagram d;
                while (reader.next(d)) {
                    // Copied, so that a sanitizer or the end of the mapping detects a payload outside the
                    // file.
                    const Bytes payload(d.payload.begin(), d.payload.end());
                    REQUIRE(payload.size() <= max_datagram_bytes);
                }
                const PcapCounts& c = reader.counts();
                REQUIRE(c.packets <= c.datagrams + c.other() + c.fragments);
            } catch (const PcapError&) {
            }
        }
    }
}
