// Captures: what the writer makes, what the reader makes of others', and of what is no capture.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "net/pcap.hpp"
#include "net/pcap_reader.hpp"
#include "net/pcap_writer.hpp"
#include "tests/catch.hpp"
#include "tests/net/loopback.hpp"

using namespace petacq;
using namespace petacq::net;
using petacq::test::Bytes;

namespace {

/// A name that is not taken; the file goes away.
class File {
  public:
    File() {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("petacq-pcap-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    }
    ~File() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] std::string name() const { return path_.string(); }
    void write(const Bytes& bytes) const {
        std::ofstream out(path_, std::ios::binary | std::ios::trunc);
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    [[nodiscard]] Bytes read() const {
        Bytes bytes(std::filesystem::file_size(path_));
        std::ifstream in(path_, std::ios::binary);
        in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return bytes;
    }

  private:
    std::filesystem::path path_;
};

/// Builds files byte by byte, after the format's description rather than with the writer.
class Builder {
  public:
    Builder(std::uint32_t magic, std::uint32_t link_type, bool swapped = false) : swapped_(swapped) {
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

void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
}
void big16(Bytes& to, std::size_t v) {
    to.push_back(static_cast<std::byte>(v >> 8 & 0xFF));
    to.push_back(static_cast<std::byte>(v & 0xFF));
}

Bytes udp(std::uint16_t to_port, const Bytes& payload) {
    Bytes out;
    big16(out, 40001);
    big16(out, to_port);
    big16(out, 8 + payload.size());
    big16(out, 0);
    append(out, payload);
    return out;
}

Bytes ip(const Bytes& body, std::uint16_t identification = 7, std::size_t offset = 0, bool more = false,
         unsigned protocol = 17, std::size_t options = 0) {
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

Bytes with_front(std::initializer_list<unsigned> front, const Bytes& rest) {
    Bytes out;
    for (const unsigned b : front)
        out.push_back(static_cast<std::byte>(b));
    append(out, rest);
    return out;
}

struct Read {
    CapturedDatagram datagram;
    Bytes payload;
};

std::vector<Read> read_all(const std::string& name, std::vector<std::uint16_t> ports = {},
                           PcapCounts* counts = nullptr) {
    PcapReader reader(name, std::move(ports));
    std::vector<Read> all;
    CapturedDatagram d;
    while (reader.next(d))
        all.push_back({d, Bytes(d.payload.begin(), d.payload.end())});
    if (counts != nullptr) *counts = reader.counts();
    return all;
}

std::string refusal(const std::string& name) {
    try {
        (void)read_all(name);
    } catch (const PcapError& e) {
        return e.what();
    }
    return "";
}

Bytes some_payload(std::size_t size, unsigned seed = 1) {
    std::mt19937_64 random(seed);
    return test::random_bytes(size, random);
}

struct Kind {
    std::string name;
    std::uint32_t link;
    Bytes bytes;
};

/// A packet of every kind around the IP packet.
std::vector<Kind> kinds_of(const Bytes& packet) {
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

}  // namespace

TEST_CASE("pcap: what is written is read back") {
    const File file;
    std::mt19937_64 random(4);
    std::vector<Bytes> heads;
    std::vector<Bytes> bodies;
    for (const std::size_t size : {0, 1, 15, 16, 1456, 65491}) {
        for (const std::size_t head : {0, 16}) {
            heads.push_back(test::random_bytes(head, random));
            bodies.push_back(test::random_bytes(size, random));
        }
    }
    {
        PcapWriter writer(file.name());
        for (std::size_t round = 0; round < 100; ++round) {
            for (std::size_t i = 0; i < bodies.size(); ++i) {
                if (!writer.has_room()) writer.flush();
                const auto time = static_cast<std::int64_t>(1'700'000'000'123'456'789 + round * 1000 + i);
                writer.add(time, {0x0A000005, static_cast<std::uint16_t>(i)}, {0x7F000001, 9601}, heads[i],
                           bodies[i]);
            }
        }
        writer.flush();
        CHECK(writer.packets_written() == 100 * bodies.size());
        CHECK(writer.bytes_written() == std::filesystem::file_size(file.name()));
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
    CHECK_THROWS_AS(PcapWriter(file.name()), std::system_error);  // it exists
}

TEST_CASE("pcap: every kind of packet that tcpdump makes") {
    const Bytes payload = some_payload(100);
    const Bytes packet = ip(udp(9601, payload));
    std::vector<Kind> kinds = kinds_of(packet);
    kinds.push_back({"IP options", 101, ip(udp(9601, payload), 7, 0, false, 17, 8)});
    for (const Kind& kind : kinds) {
        for (const bool swapped : {false, true}) {
            for (const std::uint32_t magic : {0xA1B2C3D4U, 0xA1B23C4DU}) {
                INFO(kind.name << (swapped ? ", swapped" : "") << ", magic " << magic);
                Builder builder(magic, kind.link, swapped);
                builder.packet(1'700'000'000, 345'678, kind.bytes, kind.bytes.size());
                const File file;
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

TEST_CASE("pcap: other packets are passed over and counted") {
    Builder builder(0xA1B2C3D4, 101);
    builder.packet(ip(udp(9601, some_payload(32))));
    builder.packet(ip(udp(53, some_payload(32))));                  // another port
    builder.packet(ip(some_payload(40), 7, 0, false, 6));           // TCP
    builder.packet(with_front({0x60, 0, 0, 0}, some_payload(60)));  // IPv6
    builder.packet(some_payload(3));                                // nothing
    builder.packet(ip(Bytes(4)));                                   // no whole UDP header
    builder.packet({});
    const File file;
    file.write(builder.bytes());
    PcapCounts counts;
    CHECK(read_all(file.name(), {9601}, &counts).size() == 1);
    CHECK(counts.packets == 7);
    CHECK(counts.datagrams == 1);
    CHECK(counts.other == 6);
    CHECK(read_all(file.name()).size() == 2);
}

TEST_CASE("pcap: a packet of which little was captured is passed over, whatever its kind") {
    // Filled to a whole page: nothing that may be read lies behind the last packet.
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const Bytes packet = ip(udp(9601, some_payload(32)));
    for (const Kind& kind : kinds_of(packet)) {
        const std::size_t headers = kind.bytes.size() - (kind.name == "padded Ethernet" ? 7 : 0) - 32;
        for (std::size_t captured = 0; captured <= kind.bytes.size(); ++captured) {
            INFO(kind.name << ", " << captured << " bytes");
            Builder builder(0xA1B2C3D4, kind.link);
            constexpr std::size_t record = 16;
            const Bytes filling(page - builder.bytes().size() - 2 * record - captured);
            builder.packet(filling);
            builder.packet(1, 2, kind.bytes, captured);
            REQUIRE(builder.bytes().size() == page);
            const File file;
            file.write(builder.bytes());
            PcapReader reader(file.name(), {});
            CapturedDatagram d;
            if (captured < headers) {
                REQUIRE_FALSE(reader.next(d));
                REQUIRE(reader.counts().other == 2);
            } else if (captured < headers + 32) {
                REQUIRE_THROWS_AS(reader.next(d), PcapError);  // the snap length
            } else {
                REQUIRE(reader.next(d));
                REQUIRE(d.payload.size() == 32);
                REQUIRE(reader.counts().other == 1);
            }
        }
    }
}

TEST_CASE("pcap: what is not IPv4 is counted as other, whatever the link") {
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
        Builder builder(0xA1B2C3D4, kind.link);
        builder.packet(kind.bytes);
        const File file;
        file.write(builder.bytes());
        PcapCounts counts;
        CHECK(read_all(file.name(), {}, &counts).empty());
        CHECK(counts.packets == 1);
        CHECK(counts.other == 1);
    }
}

TEST_CASE("pcap: IP fragments are joined, in any order, those of many packets at once") {
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
        payloads.push_back(test::random_bytes(1 + random() % 9000, random));
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
    parts.push_back({99, 1480, Bytes(16), false});  // its beginning never comes
    Builder builder(0xA1B2C3D4, 101);
    for (const Part& p : parts)
        builder.packet(ip(p.bytes, p.identification, p.offset, p.more));
    const File file;
    file.write(builder.bytes());
    PcapCounts counts;
    const std::vector<Read> all = read_all(file.name(), {9601}, &counts);
    REQUIRE(all.size() == payloads.size());
    for (const Bytes& payload : payloads)
        CHECK(std::count_if(all.begin(), all.end(), [&](const Read& r) { return r.payload == payload; }) ==
              1);
    CHECK(counts.fragments_incomplete == 1);
}

TEST_CASE("pcap: what lost a fragment is not mixed with a later packet of the same identification") {
    const Bytes first = udp(9601, some_payload(3000, 1));
    const Bytes second = udp(9601, some_payload(3000, 2));
    const auto part = [](const Bytes& whole, int i, std::uint16_t identification) {
        const auto at = static_cast<std::size_t>(i) * 1480;
        const std::size_t end = std::min(at + 1480, whole.size());
        return ip(Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                        whole.begin() + static_cast<std::ptrdiff_t>(end)),
                  identification, at, end < whole.size());
    };
    // `between` fragments of others, `seconds`, then the second packet.
    const auto read = [&](int lost, int between, std::uint32_t seconds, PcapCounts& counts) {
        Builder builder(0xA1B2C3D4, 101);
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
        const File file;
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
    // Within both limits they are parts of one packet, as they would be for the kernel.
    Builder builder(0xA1B2C3D4, 101);
    const auto add = [&](std::uint32_t at, const Bytes& packet) {
        builder.packet(at, 0, packet, packet.size());
    };
    add(1000, part(first, 0, 7));
    for (int i = 0; i < 63; ++i)
        add(1010, part(second, i % 3, static_cast<std::uint16_t>(100 + i / 3)));
    add(1029, part(first, 2, 7));
    add(1030, part(first, 2, 7));  // twice
    add(1030, part(first, 1, 7));
    // What overlaps in part belongs to something else.
    add(1030, part(first, 0, 8));
    add(1030, ip(Bytes(1480), 8, 1472, true));
    const File file;
    file.write(builder.bytes());
    PcapCounts counts;
    const std::vector<Read> all = read_all(file.name(), {9601}, &counts);
    REQUIRE(all.size() == 22);
    CHECK(all.back().payload == some_payload(3000, 1));
    CHECK(counts.fragments_incomplete == 1);
}

TEST_CASE("pcap: a snap length that cut datagrams short is named") {
    const Bytes packet = ip(udp(9601, some_payload(1000)));
    Builder builder(0xA1B2C3D4, 101);
    builder.packet(1, 2, packet, 262);
    const File file;
    file.write(builder.bytes());
    const std::string why = refusal(file.name());
    CHECK(why.find("snap length") != std::string::npos);
    CHECK(why.find("tcpdump -s 0") != std::string::npos);
    CHECK(why.find(file.name()) == 0);
    // Another port's are nothing to us.
    CHECK(read_all(file.name(), {9602}).empty());

    // The same of fragments, of which only the first has a port.
    const Bytes whole = udp(9601, some_payload(3000));
    Builder fragments(0xA1B2C3D4, 101);
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

TEST_CASE("pcap: what is no capture is refused with the reason") {
    const File file;
    const auto refused_as = [&](const Bytes& bytes, const std::string& part) {
        file.write(bytes);
        const std::string why = refusal(file.name());
        INFO(why);
        CHECK(why.find(part) != std::string::npos);
    };
    refused_as({}, "not a pcap file");
    refused_as(Bytes(23), "not a pcap file");
    refused_as(some_payload(500), "not a pcap file");
    refused_as(with_front({0x0A, 0x0D, 0x0D, 0x0A}, Bytes(100)), "editcap");
    refused_as(Builder(0xA1B2C3D4, 105).bytes(), "link type 105");
    CHECK_THROWS_AS(PcapReader("/does/not/exist", {}), std::system_error);
    CHECK_THROWS_AS(PcapReader("/", {}), PcapError);
    // An empty capture is one.
    file.write(Builder(0xA1B2C3D4, 1).bytes());
    CHECK(read_all(file.name()).empty());
}

TEST_CASE("pcap: cut at any byte, whole packets are read and the cut is named") {
    Builder builder(0xA1B23C4D, 101);
    std::vector<std::size_t> ends{builder.bytes().size()};
    for (unsigned i = 0; i < 5; ++i) {
        builder.packet(ip(udp(9601, some_payload(i * 13, i))));
        ends.push_back(builder.bytes().size());
    }
    const File file;
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

TEST_CASE("pcap: damaged bits and short packets never do more than end the reading") {
    std::mt19937_64 random(77);
    const std::vector<Kind> kinds = kinds_of({});
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        INFO(kinds[k].name);
        const File file;
        for (int round = 0; round < 150; ++round) {
            Builder builder(0xA1B23C4D, kinds[k].link, round % 2 == 0);
            for (unsigned i = 0; i < 6; ++i) {
                // The fourth and fifth are fragments.
                const Bytes whole =
                    kinds_of(ip(udp(9601, some_payload(64 + i, i)), 3, i == 4 ? 8 : 0, i == 3))[k].bytes;
                const std::size_t captured = random() % 3 == 0 ? random() % (whole.size() + 1) : whole.size();
                // Packets that were short on the wire, too: not only cut by the snap length.
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
                    // Read, so that a sanitizer or the end of the mapping tells what lies outside.
                    const Bytes payload(d.payload.begin(), d.payload.end());
                    REQUIRE(payload.size() <= max_datagram_bytes);
                }
                const PcapCounts& c = reader.counts();
                REQUIRE(c.packets <= c.datagrams + c.other + c.fragments);
            } catch (const PcapError&) {
            }
        }
    }
}
