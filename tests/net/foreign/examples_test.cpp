// The example layouts against the arithmetic of the vendors' own decoders: hits with every field drawn at
// random.
#include <random>
#include <string>

#include "tests/net/foreign/formats.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

std::shared_ptr<net::ForeignFormat> example(const std::string& name, double tick_ps) {
    const std::string file = PETACQ_SOURCE_DIR "/config/examples/" + name + ".layout.json";
    return std::make_shared<net::ForeignFormat>(
        config::load_layout(file, config::max_bdm_count(net::FrameVersion::one)), net::FrameCheck(), tick_ps);
}

void put_word(Bytes& bytes, std::uint64_t word) {
    for (unsigned i = 0; i < 8; ++i)
        bytes.push_back(static_cast<std::byte>(word >> 8 * i & 0xFF));
}

class Draws {
  public:
    std::uint64_t below(std::uint64_t n) { return generator_() % n; }

  private:
    std::mt19937_64 generator_{31};
};

/// A datagram of PETsys: data frames of 1,024 clocks, each with two words before its events.
Bytes petsys(const std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>>& frames,
             std::uint64_t lost = 0) {
    Bytes bytes{std::byte{0xA5}};
    for (const auto& [number, events] : frames) {
        put_word(bytes, number | (events.size() + 2) << 36);
        put_word(bytes, events.size() | lost << 15);
        for (const std::uint64_t event : events)
            put_word(bytes, event);
    }
    return bytes;
}

}  // namespace

TEST_CASE("PETsys events become what the vendor's decoder makes of them", "[foreign]") {
    net::Translator translator(example("petsys-tofpet2", 5000));
    Draws random;
    for (int i = 0; i < 500; ++i) {
        const std::uint64_t charge = random.below(1024), t_fine = random.below(1024);
        const std::uint64_t e_coarse = random.below(1024), t_coarse = random.below(1024);
        const std::uint64_t tac = random.below(4), channel = random.below(64), chip = random.below(64);
        const std::uint64_t number = random.below(std::uint64_t{1} << 36);
        // The decoder adds 27 to the code of the charge, modulo 1,024.
        const std::uint64_t code = (charge + 1024 - 27) % 1024;
        const std::uint64_t event =
            code | t_fine << 10 | e_coarse << 20 | t_coarse << 30 | tac << 40 | channel << 42 | chip << 48;
        const Translated got = translate(translator, petsys({{number, {event}}}));
        REQUIRE(got.frames.size() == 1);
        const net::Frame& frame = got.frames[0];
        REQUIRE(frame.energy == charge);
        REQUIRE(frame.time == number * 1024 + t_coarse);
        REQUIRE(frame.bdm * 4U + frame.du == chip);
        REQUIRE(frame.y * 8U + frame.x == channel);
    }
}

TEST_CASE("PETsys frames that the board marks, and numbers that are missing, are lost", "[foreign]") {
    net::Translator translator(example("petsys-tofpet2", 5000));
    const auto lost = [&](std::vector<std::uint64_t> numbers, std::uint64_t flag = 0,
                          net::Endpoint sender = {1, 1}) {
        std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> frames;
        for (const std::uint64_t number : numbers)
            frames.emplace_back(number, std::vector<std::uint64_t>{0});
        const Translated got = translate(translator, petsys(frames, flag), 0, sender);
        REQUIRE(got.malformed == net::Malformed::none);
        return got.lost;
    };
    CHECK(lost({100, 101, 102}) == 0);
    CHECK(lost({103}) == 0);
    CHECK(lost({105, 106, 110}) == 1 + 3);
    CHECK(lost({7}, 0, {2, 1}) == 0);  // another sender has numbers of its own
    CHECK(lost({111}, 1) == 1);        // some events were lost
    CHECK(lost({112, 113}, 2) == 2);   // all events were lost
    CHECK(lost({104}) == 0);           // late
    CHECK(lost({114}) == 0);
    CHECK(lost({114 + 65'536}) == 65'535);
    CHECK(lost({5}) == 0);  // the numbers started again
    CHECK(lost({6}) == 0);
    CHECK(lost({(std::uint64_t{1} << 36) - 2}, 0, {3, 1}) == 0);
    CHECK(lost({1}, 0, {3, 1}) == 2);  // across the roll-over

    // A healthy board sends frames without events.
    const Translated empty = translate(translator, petsys({{2, {}}, {3, {}}}));
    CHECK(empty.malformed == net::Malformed::none);
    CHECK(empty.frames.empty());
    CHECK(empty.lost == 0);
}

TEST_CASE("Timepix3 pixels become what their decoders make of them", "[foreign]") {
    Draws random;
    for (int i = 0; i < 500; ++i) {
        net::Translator translator(example("timepix3-spidr", 1562.5));
        const std::uint64_t column = random.below(256), row = random.below(256);
        const std::uint64_t tot = random.below(1024), toa = random.below(1 << 14);
        const std::uint64_t ftoa = random.below(16), spidr = random.below(1 << 16);
        // Double columns, super pixels of four rows, and eight pixels in each.
        const std::uint64_t address = column / 2 << 9 | row / 4 << 3 | (column % 2) << 2 | row % 4;
        Bytes datagram;
        put_word(datagram, 0xBULL << 60 | address << 44 | toa << 30 | tot << 20 | ftoa << 16 | spidr);
        const Translated got = translate(translator, datagram);
        REQUIRE(got.frames.size() == 1);
        const net::Frame& frame = got.frames[0];
        REQUIRE(frame.head_marker == net::default_head_marker);
        REQUIRE(frame.x == column);
        REQUIRE(frame.y == row);
        REQUIRE(frame.energy == tot);
        // 25 ns * (spidr * 2^14 + toa) - 1.5625 ns * ftoa, later by 15 counts, in the second period.
        const std::uint64_t counts = ((spidr << 14 | toa) << 4) + 15 - ftoa;
        REQUIRE(frame.time == (std::uint64_t{1} << 34) + counts);
    }
}

TEST_CASE("Timepix3 triggers become tags, and words of control are left out", "[foreign]") {
    net::Translator translator(example("timepix3-spidr", 1562.5));
    const auto hit = [](std::uint64_t coarse) {  // of 25 ns
        return 0xBULL << 60 | (coarse & 0x3FFF) << 30 | 15ULL << 16 | coarse >> 14;
    };
    Bytes datagram;
    put_word(datagram, 0x4ULL << 60 | 0x123456);                             // the global time
    put_word(datagram, hit(1'000'000));                                      // 16,000,000 counts
    put_word(datagram, 0x6FULL << 56 | 77ULL << 44 | 8'000'000ULL << 9);     // 3.125 ns
    put_word(datagram, 0x6BULL << 56 | 0xABCULL << 44 | 8'000'100ULL << 9);  // the second input falls
    put_word(datagram, 0x71ULL << 56);                                       // end of a readout
    put_word(datagram, hit(1'000'010));
    put_word(datagram, 0xAULL << 60);  // another mode of the chip
    const Translated got = translate(translator, datagram);
    REQUIRE(got.frames.size() == 5);
    const std::uint64_t period = std::uint64_t{1} << 34;
    CHECK(got.frames[0].time == period + 16'000'000);
    CHECK(got.as_tags[1].tag_marker == net::default_tag_marker);
    CHECK(got.as_tags[1].tail_marker == net::default_tail_marker);
    CHECK(got.as_tags[1].channel == 0);
    CHECK(got.as_tags[1].kind == 0);
    CHECK(got.as_tags[1].value == 77);
    CHECK(got.as_tags[1].time == period + 16'000'000);
    CHECK(got.as_tags[2].channel == 1);
    CHECK(got.as_tags[2].kind == 16);
    CHECK(got.as_tags[2].value == 0xABC);
    CHECK(got.as_tags[2].time == period + 16'000'200);
    CHECK(got.frames[3].head_marker == net::default_head_marker);
    CHECK(got.frames[3].time == period + 16'000'160);
    CHECK(got.frames[4].head_marker != net::default_head_marker);
    CHECK(got.frames[4].head_marker != net::default_tag_marker);

    Bytes control;
    put_word(control, 0x4ULL << 60);
    const Translated none = translate(translator, control);
    CHECK(none.malformed == net::Malformed::none);
    CHECK(none.frames.empty());
}

TEST_CASE("hexadecimal numbers stand for themselves in a layout", "[foreign]") {
    json layout = counted_format();
    layout["datagram"]["markers"][0]["value"] = "0x7E";
    layout["frame"]["markers"][0]["value"] = "0Xc5";
    layout["frame"]["du"] = "0x2";
    layout["frame"]["x"]["table"] = json::array({"0x10", nullptr, 7});
    layout["frame"]["energy"]["bits"] = "0x10";
    layout["time"]["period"] = "0x1000000";
    const config::Layout read =
        config::layout_from_json(layout, config::max_bdm_count(net::FrameVersion::one));
    CHECK(read.datagram.markers[0].value == 0x7E);
    CHECK(read.frame.markers[0].value == 0xC5);
    CHECK(read.du.constant == 2);
    CHECK(read.x.table.at(0) == 16);
    CHECK(read.energy.field.bits == 16);
    CHECK(read.time.period == 0x1000000);
}

}  // namespace petacq::test
