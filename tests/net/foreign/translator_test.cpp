// Random layouts and random datagrams against a reference that reads one bit at a time.
#include <algorithm>
#include <random>

#include "tests/net/foreign/formats.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;
using Wide = unsigned __int128;

std::mt19937_64 generator(20);

std::uint64_t below(std::uint64_t n) {
    return generator() % n;
}

json random_field(std::size_t section_bytes, unsigned max_bits) {
    const auto bytes = 1 + below(std::min<std::size_t>(8, section_bytes));
    const auto offset = below(section_bytes - bytes + 1);
    const auto bits = 1 + below(std::min<std::uint64_t>(max_bits, 8 * bytes));
    return {{"offset", offset}, {"bytes", bytes}, {"bits", bits}, {"low_bit", below(8 * bytes - bits + 1)}};
}

/// Bit `i` of a word, 0 the least significant.
bool bit_of(const std::byte* section, const json& field, const std::string& order, unsigned i) {
    const std::size_t first = field["offset"];
    const std::size_t bytes = field["bytes"];
    const std::size_t at = order == "little" ? i / 8 : bytes - 1 - i / 8;
    return (std::to_integer<unsigned>(section[first + at]) >> i % 8 & 1) != 0;
}

std::uint64_t bits_of(const std::byte* section, const json& field, const std::string& order) {
    std::uint64_t value = 0;
    const unsigned low = field["low_bit"];
    for (unsigned i = field["bits"]; i-- > 0;)
        value = value << 1 | (bit_of(section, field, order, low + i) ? 1 : 0);
    return value;
}

void set_bits(std::byte* section, const json& field, const std::string& order, std::uint64_t value) {
    const std::size_t bytes = field["bytes"];
    for (unsigned i = 0; i < field["bits"].get<unsigned>(); ++i) {
        const unsigned bit = field["low_bit"].get<unsigned>() + i;
        std::byte& byte =
            section[field["offset"].get<std::size_t>() + (order == "little" ? bit / 8 : bytes - 1 - bit / 8)];
        const auto mask = static_cast<std::byte>(1U << bit % 8);
        byte = (value >> i & 1) != 0 ? byte | mask : byte & ~mask;
    }
}

/// One random layout.
class Random {
  public:
    explicit Random(net::FrameVersion version) {
        sizes_ = {{"datagram", below(3) == 0 ? 8 : 1 + below(40)},
                  {"block", 9 + below(20)},
                  {"frame", 8 + below(30)}};
        for (const char* section : {"datagram", "block", "frame"})
            orders_[section] = below(2) == 0 ? "big" : "little";
        layout_ = {{"name", "random"},
                   {"datagram",
                    {{"byte_order", orders_["datagram"]},
                     {"header_bytes", sizes_["datagram"]},
                     {"trailer_bytes", below(3)}}},
                   {"frame", {{"byte_order", orders_["frame"]}, {"bytes", sizes_["frame"]}}}};
        if (below(2) == 0) {
            layout_["block"] = {{"byte_order", orders_["block"]},
                                {"header_bytes", sizes_["block"]},
                                {"frames", {{"offset", 0}, {"bytes", 1}, {"bits", 3}, {"low_bit", 2}}}};
        }
        json& frame = layout_["frame"];
        for (std::uint64_t i = below(3); i > 0; --i) {
            json marker = random_field(sizes_["frame"], 16);
            marker["value"] = below(std::uint64_t{1} << marker["bits"].get<unsigned>());
            frame["markers"].push_back(marker);
        }
        frame["bdm"] = random_value(config::max_bdm_count(version) - 1);
        frame["du"] = random_value(15);
        frame["x"] = random_value(255);
        frame["y"] = random_value(255);
        frame["energy"] = random_value(65'535);
        if (below(2) == 0) {
            frame["temperature"] = random_field(sizes_["frame"], 12);
            frame["temperature"]["signed"] = below(2) == 0;
            frame["temperature"]["degrees_per_count"] = 0.25;
            frame["temperature"]["degrees_at_zero"] = -3;
        }
        json& time = layout_["time"];
        const unsigned parts = 1 + static_cast<unsigned>(below(2));
        unsigned bits = 0;
        for (unsigned i = 0; i < parts; ++i) {
            time["counter"].push_back(random_field(sizes_["frame"], 28 / parts));
            bits += time["counter"].back()["bits"].get<unsigned>();
        }
        time["numerator"] = 1 + below(20);
        time["denominator"] = 1 + below(below(2) == 0 ? 1 : 1000);
        period_ = std::uint64_t{1} << bits;
        if (below(3) == 0 && bits > 3) time["period"] = period_ = 2 + below(period_ - 1);
        const char* const ways[] = {"none", "upper", "near"};
        time["roll_over"] = ways[below(3)];
        if (time["roll_over"] == "none") return;
        const std::uint64_t where = below(time["roll_over"] == "near" ? 2 : 3);
        time["upper_in"] = where == 0 || (where == 1 && !layout_.contains("block")) ? "datagram"
                           : where == 1                                             ? "block"
                                                                                    : "frame";
        time["upper"].push_back(random_field(sizes_[time["upper_in"]], 20));
    }

    [[nodiscard]] const json& layout() const { return layout_; }

    /// A datagram, and where its block headers (or nullptr) and frames are.
    struct Made {
        Bytes bytes;
        std::vector<std::pair<std::size_t, std::size_t>> frames;  // block, frame
    };
    Made make() {
        Made made;
        made.bytes = random_bytes(sizes_["datagram"]);
        for (std::uint64_t i = 1 + below(layout_.contains("block") ? 4 : 1); i > 0; --i) {
            const std::size_t block = made.bytes.size();
            const std::uint64_t count = 1 + below(7);
            if (layout_.contains("block")) {
                append(made.bytes, random_bytes(sizes_["block"]));
                set_bits(made.bytes.data() + block, layout_["block"]["frames"], orders_["block"], count);
            }
            for (std::uint64_t k = 0; k < count; ++k) {
                made.frames.emplace_back(block, made.bytes.size());
                append(made.bytes, random_bytes(sizes_["frame"]));
                if (below(4) == 0) continue;  // most have the right markers
                for (const json& marker : layout_["frame"].value("markers", json::array()))
                    set_bits(made.bytes.data() + made.frames.back().second, marker, orders_["frame"],
                             marker["value"]);
            }
        }
        append(made.bytes, random_bytes(layout_["datagram"]["trailer_bytes"]));
        return made;
    }

    /// The frame that the declaration means; nothing for a frame with a wrong marker.
    std::optional<net::Frame> meant(const Made& made, std::pair<std::size_t, std::size_t> place) {
        const std::byte* const frame = made.bytes.data() + place.second;
        const auto section = [&](const json& in) {
            return in == "frame" ? frame : made.bytes.data() + (in == "block" ? place.first : 0);
        };
        for (const json& marker : layout_["frame"].value("markers", json::array())) {
            if (bits_of(frame, marker, orders_["frame"]) != marker["value"]) return std::nullopt;
        }
        bool exists = true;
        const auto value = [&](const char* name) -> std::uint64_t {
            const json& v = layout_["frame"][name];
            if (v.is_number()) return v;
            std::uint64_t n = bits_of(section(v["in"]), v, orders_[v["in"]]);
            n = (n + v.value("add", 0U)) % (std::uint64_t{1} << v["bits"].get<unsigned>()) /
                v.value("divide", 1U);
            if (v.contains("modulo")) n %= v["modulo"].get<std::uint64_t>();
            if (!v.contains("table")) return n;
            exists = exists && n < v["table"].size() && !v["table"][n].is_null();
            return exists ? v["table"][n].get<std::uint64_t>() : 0;
        };
        net::Frame f{};
        f.bdm = static_cast<std::uint16_t>(value("bdm"));
        f.du = static_cast<std::uint8_t>(value("du"));
        f.x = static_cast<std::uint8_t>(value("x"));
        f.y = static_cast<std::uint8_t>(value("y"));
        f.energy = static_cast<std::uint16_t>(value("energy"));
        if (!exists) return std::nullopt;  // every address is valid here, so the marker is made wrong
        if (layout_["frame"].contains("temperature")) {
            const json& t = layout_["frame"]["temperature"];
            auto count = static_cast<std::int64_t>(bits_of(frame, t, orders_["frame"]));
            const std::int64_t top = std::int64_t{1} << t["bits"].get<unsigned>();
            if (t["signed"] && count >= top / 2) count -= top;
            f.temperature_16ths =
                static_cast<std::int16_t>(std::clamp<std::int64_t>(4 * count - 48, -2048, 2047));
        }
        const json& time = layout_["time"];
        std::uint64_t counter = 0;
        for (const json& part : time["counter"])
            counter = counter << part["bits"].get<unsigned>() | bits_of(frame, part, orders_["frame"]);
        Wide counts = counter;
        if (time["roll_over"] != "none") {
            const std::string in = time["upper_in"];
            const Wide upper = bits_of(section(in), time["upper"][0], orders_[in]);
            if (time["roll_over"] == "upper") {
                counts += upper * period_;
            } else {
                const Wide least = upper < period_ / 2 ? 0 : upper - period_ / 2;
                // A counter beyond its period is that of no time: it keeps its distance from the period's
                // start.
                counts += least / period_ * period_;
                if (counter < least % period_) counts += period_;
            }
        }
        f.time = static_cast<std::uint64_t>(counts * time["numerator"].get<std::uint64_t>() /
                                            time["denominator"].get<std::uint64_t>());
        return f;
    }

  private:
    static Bytes random_bytes(std::size_t count) {
        Bytes bytes(count);
        for (std::byte& b : bytes)
            b = static_cast<std::byte>(below(256));
        return bytes;
    }
    static void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

    json random_value(std::uint32_t most) {
        if (below(5) == 0) return below(most + 1);
        std::string in = "frame";
        if (below(4) == 0) in = layout_.contains("block") ? "block" : "datagram";
        const bool plain = below(2) == 0;
        json v = random_field(sizes_[in], plain ? (most == 15 ? 4 : most == 255 ? 8 : 16) : 10);
        v["in"] = in;
        if (plain) return v;
        if (below(2) == 0) v["add"] = below(2000);
        v["divide"] = 1 + below(5);
        v["modulo"] = 1 + below(most + 1);
        if (below(2) == 0) return v;
        v["table"] = json::array();
        for (std::uint64_t i = below(300); i > 0 || v["table"].empty(); i -= i > 0 ? 1 : 0)
            v["table"].push_back(below(10) == 0 ? json() : json(below(most + 1)));
        return v;
    }

    std::map<std::string, std::size_t> sizes_;
    std::map<std::string, std::string> orders_;
    json layout_;
    std::uint64_t period_ = 0;
};

}  // namespace

TEST_CASE("an offset is added within the bits of its field", "[foreign]") {
    config::LayoutValue value;
    value.field.bits = 10;
    value.add = 27;
    CHECK_FALSE(value.is_plain());
    CHECK(value.of(0) == 27);
    CHECK(value.of(996) == 1023);
    CHECK(value.of(997) == 0);
    CHECK(value.of(1023) == 26);
    value.divide = 10;
    CHECK(value.of(1000) == 0);
    CHECK(value.of(0) == 2);
}

TEST_CASE("a random layout is translated as it says", "[foreign]") {
    std::size_t good = 0;
    std::size_t bad = 0;
    for (int i = 0; i < 400; ++i) {
        // Every address that a frame can hold is one of the scanner.
        const auto version = i % 2 == 0 ? net::FrameVersion::one : net::FrameVersion::two;
        const net::FrameCheck scanner{.bdm_count = config::max_bdm_count(version), .version = version};
        Random random(version);
        INFO(random.layout().dump());
        net::Translator translator(format_of(random.layout(), 1000, scanner));
        for (int k = 0; k < 10; ++k) {
            const Random::Made made = random.make();
            const Translated got = translate(translator, made.bytes, 0, {1, 1}, version);
            REQUIRE(got.malformed == net::Malformed::none);
            REQUIRE(got.frames.size() == made.frames.size());
            for (std::size_t f = 0; f < made.frames.size(); ++f) {
                const std::optional<net::Frame> meant = random.meant(made, made.frames[f]);
                const net::Frame& frame = got.frames[f];
                if (!meant) {
                    REQUIRE(frame.head_marker != net::default_head_marker);
                    REQUIRE(frame.head_marker != net::default_tag_marker);
                    ++bad;
                    continue;
                }
                ++good;
                REQUIRE(frame.head_marker == net::default_head_marker);
                REQUIRE(frame.tail_marker ==
                        (version == net::FrameVersion::one ? net::default_tail_marker : 0));
                REQUIRE(frame.bdm == meant->bdm);
                REQUIRE(frame.du == meant->du);
                REQUIRE(frame.x == meant->x);
                REQUIRE(frame.y == meant->y);
                REQUIRE(frame.energy == meant->energy);
                const int whole = meant->temperature_16ths & ~15;  // rounded down
                REQUIRE(frame.temperature_16ths ==
                        (version == net::FrameVersion::one ? meant->temperature_16ths : whole));
                REQUIRE(frame.time == meant->time);
            }
        }
    }
    CHECK(good > 5000);
    CHECK(bad > 500);
}

TEST_CASE("a layout with modules of 16 bits needs frames of version 2", "[foreign]") {
    json layout = counted_format();
    layout["frame"]["bdm"] = {{"offset", 1}, {"bytes", 2}};  // with x
    CHECK_THROWS_WITH(format_of(layout, counted_tick_ps),
                      test::contains("/frame/bdm/bits: expected at most 8 bits without a table, found 16"));
    const net::FrameCheck scanner{.bdm_count = 300, .version = net::FrameVersion::two};
    net::Translator translator(format_of(layout, counted_tick_ps, scanner));
    const Bytes datagram = counted_datagram(1, 0, {100});
    const net::Frame frame = translate(translator, datagram, 0, {1, 1}, net::FrameVersion::two).frames.at(0);
    CHECK(frame.bdm == 0x0121);
    CHECK(frame.du == 2);
    CHECK(frame.time % (1 << 24) == 100);
    CHECK(frame.head_marker == net::default_head_marker);
    layout["frame"]["bdm"] = 65'536;
    CHECK_THROWS_WITH(format_of(layout, counted_tick_ps, scanner), test::contains("/frame/bdm: expected"));
}

TEST_CASE("a tag of a layout becomes one of version 2", "[foreign]") {
    json layout = counted_format();
    json& frame = layout["frame"];
    frame["markers"] = json::array();
    frame["kinds"] = {{"offset", 0}, {"bytes", 1}, {"hits", {0xC5}}, {"tags", {7}}};
    frame["tag"] = {{"channel", {{"offset", 1}, {"bytes", 1}, {"bits", 4}}},
                    {"kind", {{"offset", 2}, {"bytes", 1}}},
                    {"value", {{{"offset", 3}, {"bytes", 2}}}},
                    {"counter", {{{"offset", 5}, {"bytes", 3}}}}};
    const net::FrameCheck scanner{.bdm_count = 300, .version = net::FrameVersion::two};
    net::Translator translator(format_of(layout, counted_tick_ps, scanner));
    Bytes datagram = counted_datagram(0x3B, 0, {100, 101});
    datagram[4] = std::byte{7};
    const Translated got = translate(translator, datagram, 0, {1, 1}, net::FrameVersion::two);
    REQUIRE(got.frames.size() == 2);
    CHECK(got.as_tags[0].tag_marker == net::default_tag_marker);
    CHECK(got.as_tags[0].channel == 0xB);
    CHECK(got.as_tags[0].kind == 33);
    CHECK(got.as_tags[0].value == 500);
    CHECK(got.as_tags[0].time % (1 << 24) == 100);
    CHECK(got.frames[1].head_marker == net::default_head_marker);
    CHECK(got.frames[1].bdm == 0x3B);
    CHECK(got.frames[1].time == got.as_tags[0].time + 1);
}

TEST_CASE("an address that the table does not have is a bad address", "[foreign]") {
    json layout = counted_format();
    layout["frame"]["x"] = {{"offset", 2}, {"bytes", 1}, {"table", {5, nullptr}}};
    net::FrameCheck frames;
    frames.position_size = 64;
    const auto first_frame = [&](unsigned x) {
        net::Translator translator(format_of(layout, counted_tick_ps, frames));
        Bytes datagram = counted_datagram(1, 0, {100});
        datagram[4 + 2] = static_cast<std::byte>(x);
        return translate(translator, datagram).frames.at(0);
    };
    CHECK(first_frame(0).x == 5);
    for (const unsigned x : {1U, 2U, 255U}) {
        CHECK(first_frame(x).head_marker == net::default_head_marker);
        CHECK(first_frame(x).x == 255);
    }
    // Of version 2 the module is out of range, with 16 bits.
    frames.version = net::FrameVersion::two;
    frames.bdm_count = 65'535;
    net::Translator translator(format_of(layout, counted_tick_ps, frames));
    Bytes datagram = counted_datagram(1, 0, {100});
    datagram[4 + 2] = std::byte{1};
    const net::Frame frame = translate(translator, datagram, 0, {1, 1}, net::FrameVersion::two).frames.at(0);
    CHECK(frame.head_marker == net::default_head_marker);
    CHECK(frame.bdm == 65'535);
}

}  // namespace petacq::test
