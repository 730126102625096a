// petctl frames: datagrams as text, whole or only their beginnings.
#include "tools/petctl/frames/frames.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::petctl;
using nlohmann::json;
using petacq::config::Framing;
using petacq::test::contains;
namespace net = petacq::net;

namespace {

BoardFormat format(Framing framing = Framing::sequenced) {
    BoardFormat f;
    f.framing = framing;
    f.check = {10, 5, 8, 4, 64, 11};
    f.tick_ps = 1000;
    return f;
}

net::Frame hit(std::uint8_t bdm) {
    return {10, 3, bdm, 2'500'000'000, 12, 34, 511, 25 * 16 + 8, 5};
}

struct Bytes : std::vector<std::byte> {
    void header(const net::DatagramHeader& h) {
        net::encode_header(h, more(net::header_bytes), net::FrameVersion::one);
    }
    void frame(const net::Frame& f) { net::encode_frame(f, more(net::frame_bytes), net::FrameVersion::one); }
    void tag(const net::TagFrame& t) { net::encode_tag(t, more(net::frame_bytes), net::FrameVersion::one); }
    std::byte* more(std::size_t count) {
        resize(size() + count);
        return data() + size() - count;
    }
};

const net::Endpoint board{0x0A000001, 4000};

SeenDatagram seen(const Bytes& bytes) {
    return {board, 0, bytes.size(), bytes, {}, false};
}

std::string shown(const BoardFormat& f, const SeenDatagram& datagram, std::size_t count = 100) {
    DumpOptions options;
    options.count = count;
    return Dump(f, options).add(datagram);
}

json status(const json& listed) {
    return {{"common", {{"tick_ps", 1000.0}}},
            {"sockets", {{{"address", "0.0.0.0"}, {"port", 9601}}}},
            {"reception",
             {{"framing", "bare"},
              {"layout", ""},
              {"head_marker", 9},
              {"tail_marker", 4},
              {"tag_marker", 8},
              {"bdm_count", 24},
              {"du_count", 6},
              {"position_size", 64},
              {"listed", listed}}}};
}

}  // namespace

TEST_CASE("frames: bytes and fields of hits and tags") {
    Bytes bytes;
    bytes.header({net::flag_end_of_stream, 3, 77});
    bytes.frame(hit(7));
    bytes.tag({11, 2, 9, 2'500'000'001, 123456, 5});
    CHECK(shown(format(), seen(bytes)) ==
          "datagram from 10.0.0.1:4000: sequenced, 48 bytes, source 3, sequence 77, flags 0x01 (end of "
          "stream), 2 frames\n"
          "    0  a3 07 00 00 00 00 95 02 f9 00 0c 22 01 ff 19 85  time 2500000000 ticks (2.500000000 s)  "
          "energy 511 ADC  DU 3  BDM 7  x 12  y 34  temperature 25.5000 degrees C\n"
          "    1  b2 09 00 00 00 00 95 02 f9 01 00 01 e2 40 00 05  time 2500000001 ticks (2.500000001 s)  "
          "tag: channel 2  kind 9  value 123456\n");
}

TEST_CASE("frames: the same as JSON") {
    Bytes bytes;
    bytes.header({net::flag_end_of_stream, 3, 77});
    bytes.frame(hit(7));
    bytes.frame(hit(9));
    bytes.tag({11, 2, 9, 2'500'000'001, 123456, 5});
    const BoardFormat f = format();
    DumpOptions options;
    options.count = 100;
    options.as_json = true;
    const std::string line = Dump(f, options).add(seen(bytes));
    REQUIRE(line.find('\n') == line.size() - 1);
    const json datagram = json::parse(line);
    CHECK(datagram["from"] == "10.0.0.1:4000");
    CHECK(datagram["source"] == 3);
    CHECK(datagram["sequence"] == 77);
    CHECK(datagram["end_of_stream"] == true);
    CHECK(datagram["malformed"] == nullptr);
    CHECK(datagram["frames_sent"] == 3);
    REQUIRE(datagram["frames"].size() == 3);
    const json& first = datagram["frames"][0];
    CHECK(first["bytes"] == "a3 07 00 00 00 00 95 02 f9 00 0c 22 01 ff 19 85");
    CHECK(first["time"] == 2'500'000'000);
    CHECK(first["time_s"] == 2.5);
    CHECK(first["bdm"] == 7);
    CHECK(first["temperature"] == 25.5);
    CHECK(first["invalid"] == nullptr);
    CHECK_THAT(datagram["frames"][1]["invalid"].get<std::string>(), contains("BDM 9, expected at most 7"));
    CHECK(datagram["frames"][2]["tag"] == json{{"channel", 2}, {"kind", 9}, {"value", 123456}});

    bytes.resize(bytes.size() - 1);
    const json cut = json::parse(Dump(f, options).add(seen(bytes)));
    CHECK_THAT(cut["malformed"].get<std::string>(), contains("behind the last whole frame"));
    CHECK(cut["frames"] == json::array());
    CHECK(cut["sent"].is_string());
}

TEST_CASE("frames: those of version 2") {
    BoardFormat large = format();
    large.check.version = net::FrameVersion::two;
    large.check.bdm_count = 4200;
    std::vector<std::byte> bytes(net::header_bytes + 2 * net::frame_bytes);
    net::encode_header({0, 3, 77}, bytes.data(), net::FrameVersion::two);
    net::Frame frame = hit(0);
    frame.bdm = 4113;
    net::encode_frame(frame, bytes.data() + net::header_bytes, net::FrameVersion::two);
    net::encode_tag({11, 2, 9, 2'500'000'001, 123456}, bytes.data() + net::header_bytes + net::frame_bytes,
                    net::FrameVersion::two);
    SeenDatagram datagram;
    datagram.from = {0x0A000001, 4000};
    datagram.bytes = bytes.size();
    datagram.head = bytes;
    CHECK(shown(large, datagram) ==
          "datagram from 10.0.0.1:4000: sequenced, 48 bytes, source 3, sequence 77, flags 0x00, 2 frames\n"
          "    0  10 11 00 00 00 00 95 02 f9 00 0c 22 01 ff 19 a3  time 2500000000 ticks (2.500000000 s)  "
          "energy 511 ADC  DU 3  BDM 4113  x 12  y 34  temperature 25.0000 degrees C\n"
          "    1  02 09 00 00 00 00 95 02 f9 01 00 01 e2 40 00 b0  time 2500000001 ticks (2.500000001 s)  "
          "tag: channel 2  kind 9  value 123456\n");
    large.check.bdm_count = 4113;
    CHECK(contains(shown(large, datagram), "  invalid: BDM 4113, expected at most 4112"));
    CHECK(contains(shown(format(), datagram), "malformed: version 2, expected 1"));
    frame.head_marker = 12;
    net::encode_frame(frame, bytes.data() + net::header_bytes, net::FrameVersion::two);
    CHECK(contains(shown(large, datagram), "  invalid: head marker 12, expected 10 (11 for tags)\n"));
}

TEST_CASE("frames: a rejected frame says what was expected") {
    const auto why = [](net::Frame f) {
        Bytes bytes;
        bytes.frame(f);
        return why_invalid(format().check, net::Modules::below(7), bytes.data());
    };
    CHECK(why(hit(6)).empty());
    CHECK(why(hit(7)) == "BDM 7 does not belong to this source");
    CHECK(why(hit(8)) == "BDM 8, expected at most 7");
    net::Frame f = hit(6);
    f.head_marker = 12;
    f.tail_marker = 6;
    CHECK(why(f) == "head marker 12, expected 10 (11 for tags), tail marker 6, expected 5");
    f = hit(6);
    f.du = 4;
    f.x = 64;
    f.y = 65;
    CHECK(why(f) == "DU 4, expected at most 3, x 64, expected at most 63, y 65, expected at most 63");
    Bytes bytes;
    bytes.header({0, 3, 0});
    bytes.frame(f);
    CHECK(contains(shown(format(), seen(bytes)), "  invalid: DU 4, expected"));
}

TEST_CASE("frames: a malformed datagram says why, with its bytes") {
    Bytes bytes;
    bytes.header({0, 3, 0});
    bytes.frame(hit(1));
    bytes.more(3);
    CHECK(contains(shown(format(), seen(bytes)),
                   "35 bytes: malformed: 3 bytes behind the last whole frame\n  as sent: 50 45"));
    bytes[4] = std::byte{2};
    CHECK(contains(shown(format(), seen(bytes)), "malformed: version 2, expected 1"));
    bytes[0] = std::byte{0x51};
    CHECK(contains(shown(format(), seen(bytes)),
                   "malformed: it begins with 51 45 54 46, expected 50 45 54 46"));
    bytes.resize(5);
    CHECK(contains(shown(format(), seen(bytes)), "malformed: too short: expected at least 16 bytes"));
    bytes.clear();
    CHECK(contains(shown(format(), seen(bytes)), "0 bytes: malformed: too short"));
}

TEST_CASE("frames: of a beginning, what is known is shown") {
    Bytes bytes;
    for (int i = 0; i < 5; ++i)
        bytes.frame(hit(1));
    SeenDatagram datagram = seen(bytes);
    datagram.bytes = 40 * net::frame_bytes;
    const std::string text = shown(format(Framing::bare), datagram);
    CHECK(contains(text, "bare, 640 bytes, 40 frames, of which the first 5 are known\n"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 6);
}

TEST_CASE("frames: no more than asked for") {
    Bytes bytes;
    bytes.header({0, 3, 0});
    const Bytes heartbeat = bytes;
    for (int i = 0; i < 5; ++i)
        bytes.frame(hit(1));
    DumpOptions options;
    options.count = 7;
    const BoardFormat f = format();
    Dump dump(f, options);
    dump.add(seen(bytes));
    CHECK_FALSE(dump.full());
    const std::string text = dump.add(seen(bytes));
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(dump.full());
    CHECK(dump.add(seen(bytes)).empty());
    Dump heartbeats(f, options);
    for (int i = 0; i < 7; ++i)
        CHECK_FALSE(heartbeats.add(seen(heartbeat)).empty());
    CHECK(heartbeats.full());
}

TEST_CASE("frames: one source") {
    const auto any = [](const BoardFormat& f, const std::string& source, const SeenDatagram& datagram) {
        return !Dump(f, dump_options({9, source}, f)).add(datagram).empty();
    };
    Bytes bytes;
    bytes.header({0, 3, 0});
    CHECK(any(format(), "3", seen(bytes)));
    CHECK_FALSE(any(format(), "4", seen(bytes)));
    CHECK(any(format(), "10.0.0.1", seen(bytes)));
    CHECK(any(format(), "10.0.0.1:4000", seen(bytes)));
    CHECK_FALSE(any(format(), "10.0.0.1:4001", seen(bytes)));
    CHECK_FALSE(any(format(), "10.0.0.2", seen(bytes)));
    SeenDatagram other = seen(bytes);
    other.from = endpoint_in("[fd00::2]:5000");
    CHECK(any(format(), "fd00::2", other));
    CHECK(any(format(), "[fd00::2]:5000", other));
    CHECK_THROWS_WITH(dump_options({9, "65536"}, format()), contains("from 0 to 65535"));
    CHECK_THROWS_WITH(dump_options({9, "board"}, format()), contains("ADDRESS:PORT"));
    CHECK_THROWS_WITH(dump_options({9, "3"}, format(Framing::bare)), contains("bare framing has no ids"));
}

TEST_CASE("frames: what the status of the daemon expects") {
    const json listed = {{{"id", nullptr}, {"address", "10.0.0.1:4000"}, {"bdms", "0-2"}},
                         {{"id", nullptr}, {"address", "fd00::2:4000"}, {"bdms", ""}}};
    const BoardFormat f = format_of_status(json::parse(status(listed).dump()));
    CHECK(f.framing == Framing::bare);
    CHECK(f.check.head_marker == 9);
    CHECK(f.check.tail_marker == 4);
    CHECK(f.check.tag_marker == 8);
    CHECK(f.ports == std::vector<std::uint16_t>{9601});
    REQUIRE(f.source_of(board, {}) != nullptr);
    CHECK(f.source_of(board, {})->modules == net::Modules::below(3));
    CHECK(f.source_of(endpoint_in("[fd00::2]:4000"), {}) != nullptr);
    CHECK(f.source_of(endpoint_in("10.0.0.1:4001"), {}) == nullptr);
    Bytes bytes;
    bytes.frame(hit(1));
    SeenDatagram unknown_sender = seen(bytes);
    unknown_sender.from.port = 1;
    CHECK(contains(shown(f, unknown_sender), "1 frame: of no listed source, so petacqd discards it"));
    const json numbered = {{{"id", 3}, {"address", ""}, {"bdms", "4"}},
                           {{"id", 4}, {"address", "10.0.0.2"}, {"bdms", "5"}}};
    const BoardFormat by_id = format_of_status(json::parse(status(numbered).dump()));
    CHECK(by_id.source_of(board, 3) == &by_id.sources[0]);
    CHECK(by_id.source_of(board, 4) == nullptr);
    CHECK(by_id.source_of(endpoint_in("10.0.0.2:1"), 4) == &by_id.sources[1]);
    CHECK_THROWS_WITH(format_of_status(json::object()), contains("as new as petctl"));
}

TEST_CASE("frames: samples of a layout as the daemon has translated them") {
    BoardFormat f = format();
    f.layout = "boards.layout.json";
    const Bytes sent = [] {
        Bytes b;
        std::fill_n(b.more(3), 3, std::byte{0x7E});
        return b;
    }();
    SeenDatagram datagram = seen(sent);
    datagram.bytes = 900;
    CHECK(contains(
        shown(f, datagram),
        "not translated: malformed for the layout, or of an unknown source\n  as sent: 7e 7e 7e ...\n"));
    Bytes own;
    own.header({0, 3, 5});
    own.frame(hit(1));
    net::Frame unfit = hit(1);
    unfit.head_marker = 0;
    own.frame(unfit);
    datagram.translated = own;
    const std::string text = shown(f, datagram);
    CHECK(contains(
        text, "source 3, sequence 5, flags 0x00, its first 2 frames\n  as sent: 7e 7e 7e ...\n    0  a3 01"));
    CHECK(contains(text, "invalid: its markers or its address do not fit the layout\n"));
}
