// Captures that are compressed, that other programs change meanwhile, and that say what they lack.
#include <zlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include "net/pcap/pcap_reader.hpp"
#include "tests/net/pcap/pcap_builder.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

namespace {

/// Larger than what is read at once.
Bytes large_capture(unsigned packets) {
    PcapBuilder builder(0xA1B23C4D, 101);
    for (unsigned i = 0; i < packets; ++i)
        builder.packet(ip(udp(9601, some_payload(8000, i))));
    return builder.bytes();
}

void compress(const PcapFile& file, const Bytes& bytes, const char* mode = "wb") {
    gzFile out = gzopen(file.name().c_str(), mode);
    REQUIRE(gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())) ==
            static_cast<int>(bytes.size()));
    REQUIRE(gzclose(out) == Z_OK);
}

}  // namespace

TEST_CASE("pcap: a capture compressed with gzip is read as it was") {
    constexpr unsigned packets = 300;
    const Bytes bytes = large_capture(packets);
    const PcapFile plain;
    plain.write(bytes);
    const PcapFile packed;
    compress(packed, bytes);
    const std::vector<Read> expected = read_all(plain.name());
    const std::vector<Read> read = read_all(packed.name());
    REQUIRE(expected.size() == packets);
    REQUIRE(read.size() == packets);
    for (unsigned i = 0; i < packets; ++i)
        REQUIRE(read[i].payload == expected[i].payload);

    PcapReader reader(packed.name(), {});
    CapturedDatagram d;
    while (reader.next(d))
        REQUIRE(reader.position() <= reader.size());
    CHECK(reader.position() == reader.size());
    // Several compressed files, one behind another, are one.
    compress(packed, Bytes(bytes.begin(), bytes.begin() + 5000));
    compress(packed, Bytes(bytes.begin() + 5000, bytes.end()), "ab");
    CHECK(read_all(packed.name()).size() == packets);
}

TEST_CASE("pcap: cut or damaged compressed data are named") {
    const PcapFile file;
    compress(file, large_capture(200));
    const auto size = std::filesystem::file_size(file.name());
    std::filesystem::resize_file(file.name(), size / 2);
    CHECK_THAT(refusal(file.name()), contains("the capture was cut"));
    compress(file, large_capture(200));
    std::string bytes = read_file(file.name());
    for (std::size_t i = 0; i < 64; ++i)
        bytes[size / 2 + i] = static_cast<char>(~bytes[size / 2 + i]);
    write_file(file.name(), bytes);
    CHECK_THAT(refusal(file.name()), contains("damaged"));
    write_file(file.name(), std::string("\x28\xB5\x2F\xFD", 4) + std::string(100, 'x'));
    CHECK_THAT(refusal(file.name()), contains("zstd"));
}

TEST_CASE("pcap: a capture that becomes shorter while it is read is an error") {
    const Bytes bytes = large_capture(500);
    const PcapFile file;
    file.write(bytes);
    PcapReader reader(file.name(), {});
    CapturedDatagram d;
    REQUIRE(reader.next(d));
    std::filesystem::resize_file(file.name(), 20'000);
    const auto read_on = [&] {
        while (reader.next(d)) {
        }
    };
    CHECK_THROWS_WITH(read_on(), contains("became shorter while it was read"));
}

TEST_CASE("pcap: what is appended to a capture while it is read is not part of it") {
    const Bytes bytes = large_capture(10);
    const PcapFile file;
    file.write(bytes);
    PcapReader reader(file.name(), {});
    Bytes longer = bytes;
    append(longer, Bytes(bytes.begin() + 24, bytes.end()));
    file.write(longer);
    CapturedDatagram d;
    unsigned read = 0;
    while (reader.next(d))
        ++read;
    CHECK(read == 10);
}
