#include "net/wire.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "net/endpoint.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::net;

namespace {

using FrameBytes = std::array<std::uint8_t, frame_bytes>;

FrameBytes encoded(const Frame& f) {
    FrameBytes out{};
    encode_frame(f, reinterpret_cast<std::byte*>(out.data()), FrameVersion::one);
    return out;
}

Frame decoded(const FrameBytes& bytes) {
    return decode_frame(reinterpret_cast<const std::byte*>(bytes.data()), FrameVersion::one);
}

// DU 3 of BDM 17, x 0x21, y 0x0C, 500 ADC units, 36.5 degrees.
const Frame example{0xA, 0x3, 0x11, 0x0102030405060708, 0x21, 0x0C, 500, 36 * 16 + 8, 0x5};
const FrameBytes example_bytes{0xA3, 0x11, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                               0x07, 0x08, 0x21, 0x0C, 0x01, 0xF4, 0x24, 0x85};

bool equal(const Frame& a, const Frame& b) {
    return a.head_marker == b.head_marker && a.du == b.du && a.bdm == b.bdm && a.time == b.time &&
           a.x == b.x && a.y == b.y && a.energy == b.energy && a.temperature_16ths == b.temperature_16ths &&
           a.tail_marker == b.tail_marker;
}

std::vector<std::byte> datagram(std::size_t size) {
    std::vector<std::byte> bytes(std::max(size, header_bytes));
    encode_header({flag_end_of_stream, 0x0203, 0x1122334455667788}, bytes.data(), FrameVersion::one);
    bytes.resize(size);
    return bytes;
}

Malformed parse(Framing framing, const std::vector<std::byte>& bytes) {
    DatagramHeader header;
    return parse_datagram(framing, FrameVersion::one, bytes.data(), bytes.size(), header);
}

}  // namespace

TEST_CASE("a frame is laid out as the specification says") {
    CHECK(encoded(example) == example_bytes);
    CHECK(equal(decoded(example_bytes), example));
}

TEST_CASE("every byte of a frame belongs to one field") {
    // A field that changes with a byte, in the order of the bytes.
    const auto changed = [](const Frame& f) {
        return std::array<bool, 9>{f.head_marker != 0, f.du != 0, f.bdm != 0,    f.time != 0,
                                   f.x != 0,           f.y != 0,  f.energy != 0, f.temperature_16ths != 0,
                                   f.tail_marker != 0};
    };
    const std::array<std::array<bool, 9>, frame_bytes> expected = [] {
        std::array<std::array<bool, 9>, frame_bytes> e{};
        e[0] = {true, true};
        e[1][2] = true;
        for (std::size_t i = 2; i < 10; ++i)
            e[i][3] = true;
        e[10][4] = true;
        e[11][5] = true;
        e[12][6] = e[13][6] = true;
        e[14][7] = true;
        e[15][7] = e[15][8] = true;
        return e;
    }();
    for (std::size_t i = 0; i < frame_bytes; ++i) {
        CAPTURE(i);
        FrameBytes bytes{};
        bytes[i] = 0xFF;
        CHECK(changed(decoded(bytes)) == expected[i]);
    }
    FrameBytes bytes{};
    for (unsigned i = 0; i < 8; ++i) {
        bytes = {};
        bytes[2 + i] = 0x80;
        CHECK(decoded(bytes).time == std::uint64_t{0x80} << (56 - 8 * i));
    }
    bytes = {};
    bytes[12] = 0x12;
    bytes[13] = 0x34;
    CHECK(decoded(bytes).energy == 0x1234);
}

TEST_CASE("temperatures below zero") {
    const auto temperature = [](std::uint8_t whole, std::uint8_t last) {
        FrameBytes bytes = example_bytes;
        bytes[14] = whole;
        bytes[15] = last;
        return decoded(bytes).temperature_16ths;
    };
    CHECK(temperature(0xFF, 0x05) == -16);        // -1
    CHECK(temperature(0xFF, 0x85) == -8);         // -1 and 8/16
    CHECK(temperature(0x80, 0x05) == -128 * 16);  // the lowest
    CHECK(temperature(0x7F, 0xF5) == 127 * 16 + 15);

    Frame f = example;
    f.temperature_16ths = -8;
    CHECK(encoded(f)[14] == 0xFF);
    CHECK(encoded(f)[15] == 0x85);
}

TEST_CASE("frames survive encoding and decoding") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 10000; ++i) {
        FrameBytes bytes{};
        for (auto& b : bytes)
            b = static_cast<std::uint8_t>(random());
        const Frame f = decoded(bytes);
        REQUIRE(encoded(f) == bytes);
        REQUIRE(frame_time(reinterpret_cast<const std::byte*>(bytes.data())) == f.time);
    }
}

TEST_CASE("fields with more bits than on the wire are truncated") {
    Frame f = example;
    f.head_marker = 0x1A;
    f.du = 0xF3;
    f.tail_marker = 0xF5;
    CHECK(encoded(f) == example_bytes);
}

TEST_CASE("a frame of version 2 is laid out as the specification says") {
    // DU 3 of BDM 4113, x 0x21, y 0x0C, 500 ADC units, 36 degrees.
    Frame f{0xA, 0x3, 0x1011, 0x0102030405060708, 0x21, 0x0C, 500, 36 * 16 + 8, 0x5};
    FrameBytes bytes{};
    encode_frame(f, reinterpret_cast<std::byte*>(bytes.data()), FrameVersion::two);
    CHECK(bytes == FrameBytes{0x10, 0x11, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x21, 0x0C, 0x01,
                              0xF4, 0x24, 0xA3});
    f.temperature_16ths = 36 * 16;  // whole degrees
    f.tail_marker = 0;              // there is none
    const auto* const at = reinterpret_cast<const std::byte*>(bytes.data());
    CHECK(equal(decode_frame(at, FrameVersion::two), f));
    CHECK(frame_time(at) == f.time);
    CHECK(frame_bdm(at, FrameVersion::two) == 0x1011);
    CHECK(frame_temperature(at, FrameVersion::two) == 36 * 16);
    f.temperature_16ths = -8;  // rounded down
    encode_frame(f, reinterpret_cast<std::byte*>(bytes.data()), FrameVersion::two);
    CHECK(frame_temperature(at, FrameVersion::two) == -16);
}

TEST_CASE("any 16 bytes of version 2 decode to a frame that encodes to them") {
    std::mt19937 random(5);
    for (int i = 0; i < 1000; ++i) {
        FrameBytes bytes{};
        FrameBytes again{};
        for (std::uint8_t& b : bytes)
            b = static_cast<std::uint8_t>(random());
        const Frame f = decode_frame(reinterpret_cast<const std::byte*>(bytes.data()), FrameVersion::two);
        REQUIRE(f.bdm == (bytes[0] << 8 | bytes[1]));
        REQUIRE(f.du == (bytes[15] & 0xF));
        REQUIRE(f.head_marker == bytes[15] >> 4);
        encode_frame(f, reinterpret_cast<std::byte*>(again.data()), FrameVersion::two);
        REQUIRE(again == bytes);
    }
}

TEST_CASE("a tag of version 2 is laid out as the specification says") {
    const TagFrame tag{0xB, 0x3, 0x02, 0x0102030405060708, 0xFFFE7960, 0x5};
    FrameBytes bytes{};
    encode_tag(tag, reinterpret_cast<std::byte*>(bytes.data()), FrameVersion::two);
    CHECK(bytes == FrameBytes{0x03, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xFF, 0xFE, 0x79,
                              0x60, 0x00, 0xB0});
    bytes[0] |= 0xF0;  // reserved
    bytes[14] = 0xFF;
    bytes[15] |= 0x0F;
    const TagFrame again = decode_tag(reinterpret_cast<const std::byte*>(bytes.data()), FrameVersion::two);
    CHECK(again.tag_marker == 0xB);
    CHECK(again.channel == 3);
    CHECK(again.kind == 2);
    CHECK(again.time == tag.time);
    CHECK(static_cast<std::int32_t>(again.value) == -100'000);
}

TEST_CASE("a header says the version of the frames, and one of the other is malformed") {
    for (const FrameVersion version : {FrameVersion::one, FrameVersion::two}) {
        std::array<std::byte, header_bytes> bytes{};
        encode_header({0, 7, 9}, bytes.data(), version);
        CHECK(std::to_integer<int>(bytes[4]) == static_cast<int>(version));
        for (const FrameVersion expected : {FrameVersion::one, FrameVersion::two}) {
            DatagramHeader header;
            CHECK(parse_datagram(Framing::sequenced, expected, bytes.data(), bytes.size(), header) ==
                  (expected == version ? Malformed::none : Malformed::bad_version));
            CHECK(header.source == (expected == version ? 7 : 0));
        }
    }
}

TEST_CASE("a tag is laid out as the specification says") {
    const TagFrame tag{0xB, 0x3, 0x02, 0x0102030405060708, 0xFFFE7960, 0x5};
    FrameBytes bytes{};
    encode_tag(tag, reinterpret_cast<std::byte*>(bytes.data()), FrameVersion::one);
    CHECK(bytes == FrameBytes{0xB3, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xFF, 0xFE, 0x79,
                              0x60, 0x00, 0x05});
    bytes[14] = 0xFF;  // reserved
    bytes[15] = 0xF5;
    const TagFrame again = decode_tag(reinterpret_cast<const std::byte*>(bytes.data()), FrameVersion::one);
    CHECK(again.tag_marker == 0xB);
    CHECK(again.channel == 3);
    CHECK(again.kind == 2);
    CHECK(again.time == tag.time);
    CHECK(static_cast<std::int32_t>(again.value) == -100'000);
    CHECK(again.tail_marker == 0x5);
}

TEST_CASE("a header is laid out as the specification says") {
    std::array<std::uint8_t, header_bytes> bytes{};
    encode_header({0x01, 0x0203, 0x1122334455667788}, reinterpret_cast<std::byte*>(bytes.data()),
                  FrameVersion::one);
    CHECK(bytes == std::array<std::uint8_t, header_bytes>{0x50, 0x45, 0x54, 0x46, 0x01, 0x01, 0x02, 0x03,
                                                          0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88});
    DatagramHeader header;
    REQUIRE(parse_datagram(Framing::sequenced, FrameVersion::one,
                           reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(),
                           header) == Malformed::none);
    CHECK(header.flags == 0x01);
    CHECK(header.source == 0x0203);
    CHECK(header.sequence == 0x1122334455667788);
}

TEST_CASE("valid and malformed datagrams") {
    SECTION("sequenced") {
        for (const std::size_t size : {16, 32, 1472, 65504}) {
            CHECK(parse(Framing::sequenced, datagram(size)) == Malformed::none);
        }
        for (const std::size_t size : {0, 1, 15}) {
            CHECK(parse(Framing::sequenced, datagram(size)) == Malformed::too_short);
        }
        for (const std::size_t size : {17, 31, 40, 8972, 65507}) {
            CHECK(parse(Framing::sequenced, datagram(size)) == Malformed::ragged);
        }
        for (const std::size_t size : {65520, 1 << 20}) {
            CHECK(parse(Framing::sequenced, datagram(size)) == Malformed::too_long);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            auto bytes = datagram(48);
            bytes[i] ^= std::byte{0x20};
            CHECK(parse(Framing::sequenced, bytes) == Malformed::bad_magic);
        }
        for (const int version : {0, 2, 255}) {
            auto bytes = datagram(48);
            bytes[4] = static_cast<std::byte>(version);
            CHECK(parse(Framing::sequenced, bytes) == Malformed::bad_version);
        }
        // Reserved flags are accepted.
        auto bytes = datagram(48);
        bytes[5] = std::byte{0xFE};
        CHECK(parse(Framing::sequenced, bytes) == Malformed::none);
    }
    SECTION("bare") {
        for (const std::size_t size : {16, 32, 1472, 65504}) {
            CHECK(parse(Framing::bare, std::vector<std::byte>(size)) == Malformed::none);
        }
        for (const std::size_t size : {0, 1, 15}) {
            CHECK(parse(Framing::bare, std::vector<std::byte>(size)) == Malformed::too_short);
        }
        for (const std::size_t size : {17, 31, 65507}) {
            CHECK(parse(Framing::bare, std::vector<std::byte>(size)) == Malformed::ragged);
        }
        DatagramHeader header{1, 2, 3};
        const std::vector<std::byte> bytes(32);
        CHECK(parse_datagram(Framing::bare, FrameVersion::one, bytes.data(), bytes.size(), header) ==
              Malformed::none);
        CHECK((header.flags == 1 && header.source == 2 && header.sequence == 3));
    }
}

TEST_CASE("the example in the manual is correct") {
    // Lines of the form "0010  a3 11 ..." in docs/reference/wire-format.md.
    std::ifstream manual(PETACQ_SOURCE_DIR "/docs/reference/wire-format.md");
    REQUIRE(manual);
    std::vector<std::vector<std::byte>> examples;
    for (std::string line; std::getline(manual, line);) {
        if (line.size() != 53 || line.substr(4, 2) != "  ") continue;
        if (line.find_first_not_of("0123456789abcdef ") != std::string::npos) continue;
        const std::size_t offset = std::stoul(line.substr(0, 4), nullptr, 16);
        if (offset == 0) examples.emplace_back();
        REQUIRE_FALSE(examples.empty());
        std::vector<std::byte>& bytes = examples.back();
        CHECK(offset == bytes.size());
        for (std::size_t i = 6; i < line.size(); i += 3) {
            bytes.push_back(static_cast<std::byte>(std::stoul(line.substr(i, 2), nullptr, 16)));
        }
    }
    REQUIRE(examples.size() == 2);
    const std::vector<std::byte>& bytes = examples[0];
    REQUIRE(bytes.size() == 48);
    DatagramHeader header;
    REQUIRE(parse_datagram(Framing::sequenced, FrameVersion::one, bytes.data(), bytes.size(), header) ==
            Malformed::none);
    CHECK(header.source == 258);
    CHECK(header.sequence == 1000);
    CHECK(header.flags == 0);
    CHECK(equal(decode_frame(&bytes[16], FrameVersion::one),
                Frame{0xA, 3, 17, 4886718345, 33, 12, 500, 36 * 16 + 8, 0x5}));
    CHECK(equal(decode_frame(&bytes[32], FrameVersion::one),
                Frame{0xA, 11, 5, 4886718400, 250, 0, 1311, -8, 0x5}));
    REQUIRE(examples[1].size() == 16);
    const Frame of_version_2 = decode_frame(examples[1].data(), FrameVersion::two);
    CHECK(of_version_2.du == 3);
    CHECK(of_version_2.bdm == 4113);
    CHECK(of_version_2.time == 4886718345);
    CHECK((of_version_2.x == 33 && of_version_2.y == 12 && of_version_2.energy == 500));
    CHECK(of_version_2.temperature_16ths == 36 * 16);
}

TEST_CASE("endpoints as text") {
    CHECK(to_text({0xC0A8010A, 9601}) == "192.168.1.10:9601");
    CHECK(to_text({0, 0}) == "0.0.0.0:0");
    CHECK(to_text({0xFFFFFFFF, 65535}) == "255.255.255.255:65535");
}
