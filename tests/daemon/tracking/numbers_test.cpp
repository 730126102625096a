// Sequence numbers that say nothing, and those that only look so.
#include <functional>

#include "daemon/tracking/number_pattern.hpp"
#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using petacq::test::Random;

namespace {

/// One source, whose numbers a function makes.
class Numbered {
  public:
    void send(std::uint64_t number, std::uint16_t port = 1, std::uint32_t frames = 90) {
        const petacq::net::Endpoint sender{1, port};
        const auto verdict = numbers.observe(number, ++content_);
        const bool follows = verdict == SequenceVerdict::in_order && numbers.lost() == lost_;
        lost_ = numbers.lost();
        if (!follows && !is_copy(verdict)) watch.observe({number, frames, sender, before_, verdict}, numbers);
        before_ = sender;
    }
    [[nodiscard]] NumberFault fault() const { return watch.pattern(numbers).fault; }

    SequenceTracker numbers;
    NumberWatch watch;

  private:
    std::uint32_t content_ = 0;
    std::uint64_t lost_ = 0;
    petacq::net::Endpoint before_;
};

}  // namespace

TEST_CASE("numbers that say nothing are recognised, with loss, and end", "[tracking]") {
    struct Kind {
        NumberFault fault;
        std::function<std::uint64_t(std::uint64_t)> number;
    };
    const Kind kind =
        GENERATE(Kind{NumberFault::stands_still, [](std::uint64_t) { return std::uint64_t{7}; }},
                 Kind{NumberFault::little_endian, [](std::uint64_t n) { return __builtin_bswap64(n); }},
                 Kind{NumberFault::steps, [](std::uint64_t n) { return 2 * n; }},
                 Kind{NumberFault::counts_frames, [](std::uint64_t n) { return 90 * n; }},
                 Kind{NumberFault::no_order, [](std::uint64_t n) { return n * 0x9E3779B97F4A7C15ULL; }});
    Numbered source;
    Random random(1);
    for (std::uint64_t n = 0; n < 1000; ++n)
        if (!random.one_in(4)) source.send(kind.number(n));
    CHECK(name_of(source.fault()) == std::string(name_of(kind.fault)));
    CHECK(source.watch.lost(source.numbers) < 100);
    CHECK(source.watch.unnumbered(source.numbers) > 500);
    // A board that is mended.
    for (std::uint64_t n = 0; n < 1000; ++n)
        source.send(1'000'000'000 + n);
    CHECK(source.fault() == NumberFault::none);
    const std::uint64_t lost = source.watch.lost(source.numbers);
    source.send(1'000'001'010);
    CHECK(source.watch.lost(source.numbers) == lost + 10);
}

TEST_CASE("two boards with one id are recognised by their addresses", "[tracking]") {
    // Alternately, or many at a time, as a queue of a network card or a loaded host hands them over.
    const std::uint64_t turn = GENERATE(1, 20, 150);
    const std::uint64_t ahead = GENERATE(0, 1'000'000);
    CAPTURE(turn, ahead);
    Numbered source;
    for (std::uint64_t n = 0; n < 20'000; n += turn) {
        for (std::uint64_t i = 0; i < turn; ++i)
            source.send(n + i, 1);
        for (std::uint64_t i = 0; i < turn; ++i)
            source.send(ahead + n + i, 2);
        if (n > 4000) REQUIRE(source.fault() == NumberFault::two_boards);
    }
    const auto senders = source.watch.pattern(source.numbers).senders;
    CHECK(senders[0].port + senders[1].port == 3);
}

TEST_CASE("loss, disorder, copies, wild numbers and restarts are no fault of the numbers", "[tracking]") {
    Numbered source;
    Random random(2);
    const std::uint64_t one_in = GENERATE(2, 3, 10);
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        if (random.one_in(one_in)) continue;
        source.send(random.one_in(5) && n > 10 ? n - random.below(8) : n, 1, 2);
        if (random.one_in(50)) source.send(random.next());
        if (n % 5000 == 0) source.send(n / 5);
        REQUIRE(source.fault() == NumberFault::none);
    }
    CHECK(source.watch.unnumbered(source.numbers) == 0);
    CHECK(source.watch.lost(source.numbers) == source.numbers.lost());
}
