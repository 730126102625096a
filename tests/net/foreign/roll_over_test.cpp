// Counters that roll over: every time is the true one, but for the same whole number of periods in all
// sources.
#include <algorithm>
#include <random>

#include "tests/net/foreign/formats.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

constexpr std::uint64_t period = 1U << 24;
constexpr double counts_per_ns = 0.1;

std::int64_t host_ns(std::uint64_t time) {
    return static_cast<std::int64_t>(static_cast<double>(time) / counts_per_ns);
}

}  // namespace

TEST_CASE("sources that overtake each other and pause keep one time over many roll-overs", "[foreign]") {
    std::mt19937_64 random(7);
    const auto format = format_of(counted_format(), counted_tick_ps);
    // Sources 0 and 1 on one receiver, 2 on another.
    net::Translator first(format);
    net::Translator second(format);
    struct Sent {
        std::uint64_t time;
        unsigned source;
        std::int64_t arrival_ns;
    };
    std::vector<Sent> sent;
    for (unsigned source = 0; source < 3; ++source) {
        std::uint64_t time = period - 5 + source;  // the first datagrams lie on both sides of a roll-over
        for (int i = 0; i < 3000; ++i) {
            const std::int64_t late = static_cast<std::int64_t>(random() % 30'000'000);  // up to 30 ms
            sent.push_back({time, source, host_ns(time) + late});
            // Usually a fraction of a period; sometimes a pause of many.
            time += random() % 50 == 0 ? random() % (20 * period) : random() % (period / 8);
        }
    }
    std::stable_sort(sent.begin(), sent.end(),
                     [](const Sent& a, const Sent& b) { return a.arrival_ns < b.arrival_ns; });
    std::optional<std::uint64_t> offset;
    for (const Sent& s : sent) {
        net::Translator& translator = s.source == 2 ? second : first;
        // Frames out of order within the datagram, too.
        const auto got = translate(
            translator, counted_datagram(s.source, 0, {s.time + 100, s.time, s.time + 50}), s.arrival_ns);
        REQUIRE(got.frames.size() == 3);
        if (!offset) offset = got.frames[1].time - s.time;
        CHECK(*offset % period == 0);
        REQUIRE(got.frames[1].time == s.time + *offset);
        REQUIRE(got.frames[0].time == s.time + *offset + 100);
        REQUIRE(got.frames[2].time == s.time + *offset + 50);
    }
}

TEST_CASE("after a reset of all counters the sources agree again", "[foreign]") {
    for (const std::uint64_t reset_at :
         {period * 7 + 3, period * 7 + period / 2 - 2000, period * 7 + period / 2,
          period * 7 + period / 2 + 2000, period * 8 - 3}) {
        INFO("reset at " << reset_at);
        const auto format = format_of(counted_format(), counted_tick_ps);
        net::Translator translator(format);
        for (std::uint64_t time = 0; time < reset_at; time += period / 10) {
            for (unsigned source = 0; source < 3; ++source)
                translate(translator, counted_datagram(source, 0, {time}), host_ns(time));
        }
        std::optional<std::uint64_t> offset;
        for (std::uint64_t time = 0; time < 3 * period; time += period / 10) {
            for (unsigned source = 0; source < 3; ++source) {
                // A few thousand counts apart, so that half a period lies between what the sources expect.
                const auto got = translate(translator, counted_datagram(source, 0, {time + source * 3000}),
                                           host_ns(reset_at + time + source * 3000));
                if (!offset) offset = got.frames.at(0).time - time;
                REQUIRE(got.frames.at(0).time == time + source * 3000 + *offset);
            }
        }
    }
}

TEST_CASE("a source with a wild counter moves no other source", "[foreign]") {
    std::mt19937_64 random(3);
    const auto format = format_of(counted_format(), counted_tick_ps);
    net::Translator translator(format);
    std::optional<std::uint64_t> offset;
    for (std::uint64_t time = 0; time < 30 * period; time += period / 10) {
        const auto good = translate(translator, counted_datagram(0, 0, {time}), host_ns(time));
        translate(translator, counted_datagram(1, 0, {random()}), host_ns(time));
        translate(translator, counted_datagram(2, 0, {time + period * 2 / 5}), host_ns(time));
        if (!offset) offset = good.frames.at(0).time - time;
        REQUIRE(good.frames.at(0).time == time + *offset);
    }
}

TEST_CASE("sequence numbers continue over their roll-over", "[foreign]") {
    const auto format = format_of(counted_format(), counted_tick_ps);
    net::Translator translator(format);
    std::optional<std::uint64_t> offset;
    std::uint64_t number = 65'530;
    for (const int step : {0, 3, -2, 5, -1, 30'000, 30'000, 30'000, 1, -1, 2}) {
        number += static_cast<std::uint64_t>(step);
        const auto got = translate(translator, counted_datagram(9, static_cast<unsigned>(number), {}));
        CHECK(got.frames.empty());
        if (!offset) offset = got.header.sequence - number;
        REQUIRE(got.header.sequence == number + *offset);
        CHECK(got.header.source == 9);
    }
}

}  // namespace petacq::test
