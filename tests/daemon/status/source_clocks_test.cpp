// Clocks of boards against that of the host, second by second.
#include "daemon/status/source_clocks.hpp"

#include "tests/support/catch.hpp"

using namespace petacq::daemon;

namespace {

constexpr double tick_ps = 1000;
constexpr std::int64_t second_ns = 1'000'000'000;

/// A board that sends 20 datagrams in each second.
struct Board {
    SourceStatus status;
    SourceClocks clocks;

    Board() {
        status.state = SourceState::active;
        status.progress = 5 * second_ns;
        status.last_seen = 0;
    }
    /// Whether its clock is off after a second in which it has advanced so far.
    bool after(double advanced_s, std::uint64_t datagrams = 20) {
        status.datagrams += datagrams;
        status.frames += 10 * datagrams;
        *status.last_seen += second_ns;
        status.progress += static_cast<std::uint64_t>(static_cast<std::int64_t>(advanced_s * second_ns));
        clocks.observe({status}, tick_ps);
        return !clocks.off().empty();
    }
};

}  // namespace

TEST_CASE("a clock that keeps pace is none to name", "[status][clocks]") {
    Board board;
    for (const double advanced : {1.0, 0.9, 1.1, 0.6, 1.9, 1.0})
        CHECK_FALSE(board.after(advanced));
}

TEST_CASE("times that stand still or are in another unit are named, and right ones end it",
          "[status][clocks]") {
    for (const double pace : {0.0, 1 / 64.0, 64.0, -1.0}) {
        INFO(pace);
        Board board;
        CHECK_FALSE(board.after(1));
        CHECK_FALSE(board.after(pace));
        REQUIRE(board.after(pace));
        CHECK(board.clocks.off()[0].pace == pace);
        CHECK_FALSE(board.after(1));
    }
}

TEST_CASE("a step, an interruption and a board that rarely sends are no pace", "[status][clocks]") {
    Board board;
    board.after(1);
    CHECK_FALSE(board.after(3600));
    CHECK_FALSE(board.after(1));
    CHECK_FALSE(board.after(-3600));
    CHECK_FALSE(board.after(1));
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(board.after(0, 1));  // all of its datagrams may have waited in it
    board.status.state = SourceState::jumping;
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(board.after(100));
}

TEST_CASE("a source without valid frames has no clock", "[status][clocks]") {
    Board board;
    for (int i = 0; i < 5; ++i) {
        board.status.invalid_frames = board.status.frames + 200;
        CHECK_FALSE(board.after(0));
    }
}
