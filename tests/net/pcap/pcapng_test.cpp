// Captures in the format of Wireshark: blocks, sections, interfaces, and damage anywhere.
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "net/pcap/pcap_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::net;

namespace {

using Content = std::vector<std::byte>;

class Blocks {
  public:
    explicit Blocks(bool swapped = false) : swapped_(swapped) {}

    void section() {
        Content body;
        put(body, 0x1A2B3C4D, 4);
        put(body, 1, 2);
        put(body, 0, 2);
        put(body, UINT64_MAX, 8);
        block(0x0A0D0D0A, body);
    }
    void interface(std::uint16_t link_type, std::optional<std::uint8_t> resolution = {},
                   std::optional<std::uint64_t> offset_s = {}) {
        Content body;
        put(body, link_type, 2);
        put(body, 0, 2);
        put(body, 65535, 4);
        if (resolution) {
            put(body, 9, 2);
            put(body, 1, 2);
            put(body, *resolution, 1);
            put(body, 0, 3);
        }
        if (offset_s) {
            put(body, 14, 2);
            put(body, 8, 2);
            put(body, *offset_s, 8);
        }
        put(body, 0, 4);
        block(1, body);
    }
    void packet(std::uint32_t interface, std::uint64_t units, const Content& bytes) {
        Content body;
        put(body, interface, 4);
        put(body, units >> 32, 4);
        put(body, units & 0xFFFFFFFF, 4);
        put(body, bytes.size(), 4);
        put(body, bytes.size(), 4);
        body.insert(body.end(), bytes.begin(), bytes.end());
        block(6, body);
    }
    void simple_packet(const Content& bytes) {
        Content body;
        put(body, bytes.size(), 4);
        body.insert(body.end(), bytes.begin(), bytes.end());
        block(3, body);
    }
    /// Statistics with these options, each of 8 bytes.
    void statistics(std::uint32_t interface,
                    const std::vector<std::pair<std::uint16_t, std::uint64_t>>& options) {
        Content body;
        put(body, interface, 4);
        put(body, 0, 8);
        for (const auto& [code, value] : options) {
            put(body, code, 2);
            put(body, 8, 2);
            put(body, value, 8);
        }
        put(body, 0, 4);
        block(5, body);
    }
    void block(std::uint32_t type, Content body) {
        body.resize((body.size() + 3) / 4 * 4);
        put(content, type, 4);
        put(content, body.size() + 12, 4);
        content.insert(content.end(), body.begin(), body.end());
        put(content, body.size() + 12, 4);
    }
    std::string write(const test::TemporaryDirectory& directory) const {
        const std::string name = (directory / "capture.pcapng").string();
        std::ofstream(name, std::ios::binary)
            .write(reinterpret_cast<const char*>(content.data()),
                   static_cast<std::streamsize>(content.size()));
        return name;
    }

    Content content;

  private:
    void put(Content& out, std::uint64_t value, std::size_t bytes) const {
        for (std::size_t i = 0; i < bytes; ++i) {
            const std::size_t at = swapped_ ? bytes - 1 - i : i;
            out.push_back(static_cast<std::byte>(value >> (8 * at)));
        }
    }
    bool swapped_;
};

/// A raw IPv4 packet with a UDP datagram of these bytes.
Content udp(const std::string& payload) {
    const std::size_t length = 28 + payload.size();
    Content p(28);
    p[0] = std::byte{0x45};
    p[2] = static_cast<std::byte>(length >> 8);
    p[3] = static_cast<std::byte>(length);
    p[9] = std::byte{17};
    p[12] = std::byte{10};
    p[21] = std::byte{7};
    p[23] = std::byte{9};
    p[24] = static_cast<std::byte>((length - 20) >> 8);
    p[25] = static_cast<std::byte>(length - 20);
    for (const char c : payload)
        p.push_back(static_cast<std::byte>(c));
    return p;
}

std::vector<std::pair<std::int64_t, std::string>> read(const std::string& file) {
    PcapReader reader(file, {});
    CapturedDatagram d;
    std::vector<std::pair<std::int64_t, std::string>> all;
    while (reader.next(d))
        all.emplace_back(d.time_ns,
                         std::string(reinterpret_cast<const char*>(d.payload.data()), d.payload.size()));
    return all;
}

constexpr std::int64_t second = 1'000'000'000;

}  // namespace

TEST_CASE("pcapng: times of any resolution, several interfaces and sections, either byte order") {
    const test::TemporaryDirectory directory;
    const bool swapped = GENERATE(false, true);
    CAPTURE(swapped);
    Blocks blocks(swapped);
    blocks.section();
    blocks.interface(101);                // microseconds
    blocks.interface(101, 9);             // nanoseconds
    blocks.interface(101, 0x80 | 10, 5);  // 1/1024 s, 5 s later
    blocks.interface(147, 9);             // a network that nobody knows
    blocks.block(4, Content(8));          // name resolution
    blocks.packet(0, 1'500'000, udp("a"));
    blocks.packet(1, 1'600'000'007, udp("bc"));
    blocks.packet(2, 512, udp("def"));
    blocks.packet(3, 1, udp("unknown"));
    blocks.simple_packet(udp("simple"));
    blocks.section();
    blocks.interface(228, 3);
    blocks.packet(0, 9'001, udp(""));
    using Expected = std::vector<std::pair<std::int64_t, std::string>>;
    CHECK(read(blocks.write(directory)) == Expected{{1'500'000'000, "a"},
                                                    {1'600'000'007, "bc"},
                                                    {5 * second + second / 2, "def"},
                                                    {1, "simple"},
                                                    {9 * second + 1'000'000, ""}});
}

TEST_CASE("pcapng: damage and cuts are named, and nothing outside the file is read") {
    const test::TemporaryDirectory directory;
    Blocks blocks;
    blocks.section();
    blocks.interface(101, 9);
    for (int i = 0; i < 5; ++i)
        blocks.packet(0, static_cast<std::uint64_t>(i), udp("payload"));
    const std::string name = blocks.write(directory);
    CHECK(read(name).size() == 5);
    SECTION("a cut") {
        for (std::size_t size = 25; size < blocks.content.size(); ++size) {
            std::filesystem::resize_file(blocks.write(directory), size);
            try {
                const std::size_t packets = read(name).size();
                CHECK(packets < 5);
            } catch (const PcapError& e) {
                CHECK(std::string(e.what()).find("the capture was cut") != std::string::npos);
            }
        }
    }
    SECTION("any byte") {
        std::mt19937_64 random(1);
        for (int i = 0; i < 3000; ++i) {
            Blocks damaged = blocks;
            for (std::size_t n = 1 + random() % 3; n > 0; --n)
                damaged.content[random() % damaged.content.size()] = static_cast<std::byte>(random());
            try {
                read(damaged.write(directory));
            } catch (const PcapError&) {
            }
        }
        SUCCEED();
    }
    SECTION("a packet of no interface") {
        blocks.packet(1, 0, udp("x"));
        CHECK_THROWS_WITH(read(blocks.write(directory)), test::contains("interface 1, which is not"));
    }
}

TEST_CASE("pcapng: what the capturing program lost is known if the file says so") {
    const test::TemporaryDirectory directory;
    const bool swapped = GENERATE(false, true);
    Blocks blocks(swapped);
    const auto dropped = [&] {
        PcapReader reader(blocks.write(directory), {});
        CapturedDatagram d;
        while (reader.next(d)) {
        }
        return reader.dropped();
    };
    blocks.section();
    blocks.interface(101);
    blocks.interface(101);
    blocks.packet(0, 1, udp("a"));
    blocks.statistics(0, {{4, 100}});  // only how many were received
    CHECK_FALSE(dropped().has_value());
    blocks.statistics(0, {{4, 100}, {5, 0}});
    CHECK(dropped() == 0U);
    blocks.statistics(1, {{5, 3}, {7, 4}});
    blocks.statistics(0, {{5, 10}});
    blocks.statistics(0, {{5, 12}});  // replaces the one before
    CHECK(dropped() == 19U);
    blocks.section();
    blocks.interface(101);
    blocks.statistics(0, {{7, 1}});
    CHECK(dropped() == 20U);
}
