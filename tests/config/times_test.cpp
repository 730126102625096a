// Times in ns and s as ticks: by hand, and against arithmetic in whole picoseconds.
#include <random>
#include <string>

#include "config/base/ticks.hpp"
#include "config/configuration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

using config::Rounding;
using config::ticks_of;
using config::TimeUnit;
using nlohmann::json;

TEST_CASE("a time becomes the whole ticks below, above or nearest") {
    CHECK(ticks_of("4", TimeUnit::ns, 25, Rounding::down) == 160);
    CHECK(ticks_of("4.01", TimeUnit::ns, 25, Rounding::down) == 160);
    CHECK(ticks_of("4.01", TimeUnit::ns, 25, Rounding::up) == 161);
    CHECK(ticks_of("4.0125", TimeUnit::ns, 25, Rounding::nearest) == 161);
    CHECK(ticks_of("4.0124", TimeUnit::ns, 25, Rounding::nearest) == 160);
    // In binary fractions, 4.1 / 0.1 is a little less than 41.
    CHECK(ticks_of("0.0041", TimeUnit::ns, 0.1, Rounding::down) == 41);
    CHECK(ticks_of("0.0041", TimeUnit::ns, 0.1, Rounding::up) == 41);
    CHECK(ticks_of("1", TimeUnit::ns, 19.53125, Rounding::down) == 51);
    CHECK(ticks_of("1e5", TimeUnit::s, 19.53125, Rounding::up) == 5'120'000'000'000'000);
    CHECK(ticks_of("100000.000000000001", TimeUnit::s, 1, Rounding::down) == 100'000'000'000'000'001);
    CHECK(ticks_of("0", TimeUnit::s, 10, Rounding::up) == 0);
    CHECK(ticks_of("0.000", TimeUnit::s, 10, Rounding::up) == 0);
    CHECK(ticks_of("1e-30", TimeUnit::s, 10, Rounding::down) == 0);
    CHECK(ticks_of("1e-30", TimeUnit::s, 10, Rounding::up) == 1);
    CHECK(ticks_of("00012.50e+01", TimeUnit::ns, 1000, Rounding::down) == 125);
    CHECK(ticks_of(".5", TimeUnit::ns, 500, Rounding::down) == 1);
}

TEST_CASE("whole picoseconds agree with whole numbers") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t tick = 1 + random() % 100'000;
        const std::uint64_t ps = random() % 1'000'000'000'000'000;
        CAPTURE(tick, ps);
        const std::string fraction = std::to_string(1000 + ps % 1000).substr(1);
        const std::string ns = std::to_string(ps / 1000) + "." + fraction;
        const auto found = [&](Rounding r) {
            return ticks_of(ns, TimeUnit::ns, static_cast<double>(tick), r);
        };
        REQUIRE(found(Rounding::down) == ps / tick);
        REQUIRE(found(Rounding::up) == (ps + tick - 1) / tick);
        REQUIRE(found(Rounding::nearest) == (2 * ps + tick) / (2 * tick));
    }
}

TEST_CASE("whole numbers of a unit are divided exactly") {
    // Long floating-point numbers give 33889245062297464: this tick is no binary fraction.
    CHECK(config::WholeTimes(TimeUnit::ms, 10.123456789).ticks(343'076'308, Rounding::up) ==
          33'889'245'062'297'466);
    std::mt19937_64 random(2);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t tick = 1 + random() % 100'000;
        const config::WholeTimes ms(TimeUnit::ms, static_cast<double>(tick) / 1000);
        const std::uint64_t number = random() % 1'000'000;
        CAPTURE(tick, number);
        for (const Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest})
            REQUIRE(ms.ticks(number, rounding) == ticks_of(std::to_string(number), TimeUnit::ms,
                                                           static_cast<double>(tick) / 1000, rounding));
    }
    const config::WholeTimes ps(TimeUnit::ps, 0.5);
    CHECK(ps.ticks((std::uint64_t{1} << 62U) - 1, Rounding::up) == (std::uint64_t{1} << 63U) - 2);
    CHECK(!ps.ticks(std::uint64_t{1} << 62U, Rounding::up));
    CHECK(!config::WholeTimes(TimeUnit::s, 0.001).ticks(UINT64_MAX, Rounding::down));
}

TEST_CASE("what is no time is refused") {
    for (const char* text : {"", "-1", "-0.5", "nan", "inf", "x", "1 ns", "1e", "1e5x", "1.2.3", ".", "1e999",
                             "1e30", "+1", "0x10"}) {
        CAPTURE(text);
        CHECK(complaint([&] {
                  ticks_of(text, TimeUnit::ns, 10, Rounding::down);
              }).starts_with("expected a number of ns of at least 0"));
    }
    const std::string digits(309, '9');
    CHECK_FALSE(complaint([&] { ticks_of(digits, TimeUnit::s, 10, Rounding::down); }).empty());
}

TEST_CASE("the configuration takes windows in ns") {
    const TemporaryDirectory directory;
    config::Scanner scanner = tiny_scanner();
    scanner.tick_ps = 12.5;
    write_file(directory / "s.json", config::to_json(scanner).dump());
    const auto with = [&](const char* coincidence, const char* gammas = "null") {
        json document = {{"scanner", "s.json"},
                         {"calibration", "c.h5"},
                         {"data_dir", "data"},
                         {"receive", {{"sockets", {{{"port", 9601}}}}}}};
        document["coincidence"] = json::parse(coincidence);
        document["gammas"] = json::parse(gammas);
        return config::configuration_from_json(document, directory.path());
    };
    const auto c = with(R"({"window_ns": 4.01, "delay_ns": 100.01})");
    CHECK(c.coincidence.window_ticks == 320);
    CHECK(c.coincidence.delay_ticks == 8001U);
    CHECK(config::to_json(c) == *c.document);
    CHECK_FALSE(c.document->at("coincidence").contains("window_ns"));
    CHECK(with(R"({"window_ns": 4, "delay_ticks": 9000})").coincidence.delay_ticks == 9000U);
    CHECK_FALSE(with(R"({"window_ns": 4, "delay_ticks": null})").coincidence.delay_ticks);

    const auto three = with(R"({"window_ticks": 9})", R"({"lower_keV": 800, "upper_keV": 900,
        "before_ns": 4.01, "after_ticks": 7, "delay_ns": 100.01})");
    CHECK(three.gammas->before_ticks == 320);
    CHECK(three.gammas->after_ticks == 7);
    CHECK(three.gammas->delay_ticks == 8001U);
    CHECK(config::to_json(three) == *three.document);

    const auto refused = [&](const char* coincidence) { return complaint([&] { with(coincidence); }); };
    CHECK(refused(R"({"window_ns": 4, "window_ticks": 320})") ==
          "/coincidence/window_ns: expected either window_ns or window_ticks, found both");
    CHECK(refused(R"({"window_ns": 4, "delay_ticks": 900, "delay_ns": 90})")
              .starts_with("/coincidence/delay_ns"));
    CHECK(refused("{}").starts_with("/coincidence/window_ticks: missing; expected an integer"));
    CHECK(refused(R"({"window_ns": -1})").starts_with("/coincidence/window_ns: expected a number"));
    CHECK(refused(R"({"window_ns": 1e300})").starts_with("/coincidence/window_ns: expected a number from 0"));
    CHECK(refused(R"({"window_ns": 1e9})").starts_with("/coincidence/window_ticks: expected an integer"));
    CHECK(refused(R"({"window_ns": "4"})").starts_with("/coincidence/window_ns: expected a number"));
    CHECK(refused(R"({"window_n": 4})").find("did you mean \"window_ns\"") != std::string::npos);
}

}  // namespace petacq::test
