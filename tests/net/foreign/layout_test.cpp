// Layouts that are refused, and the messages that say why.
#include "config/base/error.hpp"
#include "tests/net/foreign/formats.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

std::string refusal(const json& layout) {
    try {
        format_of(layout, counted_tick_ps);
    } catch (const config::Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("wrong layouts are refused with the path and the expectation", "[foreign]") {
    REQUIRE(refusal(counted_format()).empty());
    struct Case {
        const char* path;
        json value;
        const char* message;
    };
    const json word = {{"offset", 1}, {"bytes", 2}};
    const Case cases[] = {
        {"/frame/bytes", 0, "/frame/bytes: expected an integer from 2 to 256, found 0"},
        {"/frame/bytes", "0x200", "/frame/bytes: expected an integer from 2 to 256, found 512"},
        {"/frame/bytes", "8", "/frame/bytes: expected an integer from 2 to 256, found the string \"8\""},
        {"/frame/du", "0xG",
         "/frame/du: expected an integer from 0 to 65535 or an object, found the string \"0xG\""},
        {"/frame/x/pick", {{{"low_bit", 7}, {"bits", 2}}}, "/frame/x/pick/0: expected bits within the 8"},
        {"/frame/kinds",
         {{"offset", 0}, {"bytes", 2}, {"hits", {1}}},
         "/frame/kinds/bits: expected at most 8"},
        {"/frame/kinds",
         {{"offset", 0}, {"bytes", 1}, {"bits", 4}, {"hits", {16}}},
         "/frame/kinds/hits/0: expected a value of 4 bits, found 16"},
        {"/frame/kinds",
         {{"offset", 0}, {"bytes", 1}, {"hits", {1}}, {"ignore", {2, 1}}},
         "/frame/kinds/ignore/1: expected each value once, found 1 again"},
        {"/frame/kinds",
         {{"offset", 0}, {"bytes", 1}, {"hits", {1}}, {"tags", {2}}},
         "/frame/tag: missing; expected what the tags of /frame/kinds hold"},
        {"/frame/tag", {{"counter", {word}}}, "/frame/tag: expected values of tags in /frame/kinds/tags"},
        {"/datagram/number",
         {{"offset", 0}, {"bytes", 1}},
         "/datagram/number: expected null with a sequence"},
        {"/frame/colour", 1, "/frame/colour: unknown key"},
        {"/frame/bdm/offset", 8, "/frame/bdm: expected a word within the 8 bytes of the frame"},
        {"/frame/bdm", word, "/frame/bdm/bits: expected at most 8 bits without a table, found 16"},
        {"/frame/du", 16, "/frame/du: expected at most 15, found 16"},
        {"/frame/x/low_bit", 8, "/frame/x/low_bit: expected less than the 8 bits of the word, found 8"},
        {"/frame/x/bits", 9, "/frame/x/bits: expected at most 8 from low_bit on"},
        {"/frame/x/in", "block", "/frame/x: expected a word within the 0 bytes of the block header"},
        {"/frame/x/table", {256}, "/frame/x/table/0: expected at most 255, found 256"},
        {"/frame/energy/divide", 0, "/frame/energy/divide: expected an integer from 1 to 65535, found 0"},
        {"/frame/markers/0/value", 256, "/frame/markers/0/value: expected a value of 8 bits, found 256"},
        {"/datagram/source", nullptr, "/datagram/source: missing; expected both"},
        {"/datagram/sequence/offset", 3, "/datagram/sequence: expected a word within the 4 bytes"},
        {"/time/period", (1 << 24) + 1, "/time/period: expected at most"},
        {"/time/period", 1000, "/time/roll_over: expected a period of at least 20 ms"},
        {"/time/upper", {word}, "/time/upper: expected none with roll_over \"count\""},
        {"/time/roll_over", "upper", "/time/upper: expected one field or more"},
        {"/time/roll_over", "sometimes",
         "/time/roll_over: expected \"none\", \"upper\", \"near\" or \"count\""},
        {"/time/counter", json::array(), "/time/counter: expected an array of at least 1"},
    };
    for (const Case& c : cases) {
        json layout = counted_format();
        layout[json::json_pointer(c.path)] = c.value;
        INFO(c.path << " = " << c.value.dump());
        const std::string found = refusal(layout);
        INFO(found);
        CHECK(found.rfind(c.message, 0) == 0);
    }
    json layout = counted_format();
    layout["time"]["numerator"] = 4'294'967'295;
    layout["time"]["denominator"] = 7;
    CHECK(refusal(layout).empty());
    layout["time"]["counter"] = {{{"offset", 1}, {"bytes", 4}}};
    CHECK(refusal(layout).rfind("/time/denominator: expected 1, or", 0) == 0);
}

TEST_CASE("datagrams that do not fit the layout are malformed", "[foreign]") {
    net::Translator translator(format_of(counted_format(), counted_tick_ps));
    const Bytes good = counted_datagram(1, 2, {10, 20});
    REQUIRE(translate(translator, good).frames.size() == 2);
    for (std::size_t size = 0; size < good.size(); ++size) {
        INFO(size << " bytes");
        const bool whole = size == 4 || size == 12;  // a heartbeat; one frame
        const auto got = translate(translator, Bytes(good.begin(), good.begin() + static_cast<long>(size)));
        CHECK((got.malformed == net::Malformed::none) == whole);
    }
    Bytes marked = good;
    marked[0] = std::byte{0};
    CHECK(translate(translator, marked).malformed == net::Malformed::bad_magic);
    Bytes long_one = counted_datagram(1, 2, std::vector<std::uint64_t>(net::max_foreign_frames));
    CHECK(translate(translator, long_one).frames.size() == net::max_foreign_frames);
    long_one.resize(long_one.size() + 8);
    CHECK(translate(translator, long_one).malformed == net::Malformed::too_long);

    json layout = counted_format();
    layout["datagram"]["header_bytes"] = 6;
    layout["datagram"]["length"] = {{"offset", 4}, {"bytes", 2}};
    layout["datagram"]["end_of_stream"] = {{"offset", 1}, {"bytes", 1}, {"low_bit", 7}, {"value", 1}};
    layout["datagram"]["source"]["bits"] = 7;
    net::Translator with_length(format_of(layout, counted_tick_ps));
    Bytes datagram(6 + 8);
    datagram[0] = std::byte{0x7E};
    datagram[1] = std::byte{0x83};
    datagram[5] = std::byte{14};
    const auto ended = translate(with_length, datagram);
    CHECK(ended.malformed == net::Malformed::none);
    CHECK(ended.header.flags == net::flag_end_of_stream);
    CHECK(ended.header.source == 3);
    datagram[5] = std::byte{15};
    CHECK(translate(with_length, datagram).malformed == net::Malformed::ragged);
}

}  // namespace petacq::test
