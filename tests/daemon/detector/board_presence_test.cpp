// For which share of a second the data of each module arrived.
#include "daemon/detector/board_presence.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq;
using daemon::BoardPresence;

namespace {

constexpr std::uint64_t second = 1'000'000;
constexpr std::uint64_t longest_pause = 100'000;
const std::vector<std::vector<std::uint32_t>> listed{{0, 1}, {2}};

/// A source that sends ten frames in each 1,000 ticks.
void send(BoardPresence& boards, std::uint32_t source, std::uint64_t from, std::uint64_t to,
          std::uint8_t bdm) {
    for (std::uint64_t t = from; t < to; t += 1000)
        boards.add({source, t, t + 900, 1, 10, 0, bdm, bdm, true});
}

std::vector<double> live(BoardPresence& boards, std::uint64_t from, std::uint64_t to) {
    std::vector<double> shares;
    boards.take({from, to}, shares);
    return shares;
}

}  // namespace

TEST_CASE("board presence: boards of which everything arrived") {
    BoardPresence boards(second, longest_pause, 4, listed);
    send(boards, 0, 0, 2 * second, 0);
    send(boards, 1, 0, 2 * second, 2);
    const auto shares = live(boards, 0, second);
    CHECK(shares[0] == 1);
    CHECK(shares[1] == 1);
    CHECK(shares[2] == 1);
    CHECK(std::isnan(shares[3]));  // nobody has heard of it
    CHECK(live(boards, second, 2 * second)[2] == 1);
}

TEST_CASE("board presence: a lost datagram counts where the time of its source has a gap") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 1, 0, 2 * second, 2);
    for (std::uint64_t t = 0; t < 2 * second; t += 1000) {
        if (t % 10'000 == 5000) continue;  // one of ten is lost
        boards.add({0, t, t + 900, 1, 10, t % 10'000 == 6000 ? 1 : 0, 0, 0, true});
    }
    const auto shares = live(boards, 0, second);
    CHECK(shares[0] == Approx(0.9));
    CHECK(shares[2] == 1);
    CHECK(live(boards, second, 2 * second)[1] == Approx(0.9));
}

TEST_CASE("board presence: a cable that was out for a while shows in the seconds in which it was") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 1, 0, 6 * second, 2);
    send(boards, 0, 0, 3 * second / 2, 0);
    boards.add({0, 7 * second / 2, 7 * second / 2 + 900, 1, 10, 2000, 0, 0, true});
    send(boards, 0, 7 * second / 2 + 1000, 6 * second, 0);
    CHECK(live(boards, 0, second)[0] == 1);
    CHECK(live(boards, second, 2 * second)[0] == Approx(0.5).epsilon(0.01));
    CHECK(live(boards, 2 * second, 3 * second)[0] == 0);
    CHECK(live(boards, 3 * second, 4 * second)[0] == Approx(0.5).epsilon(0.01));
    CHECK(live(boards, 4 * second, 5 * second)[0] == 1);
}

TEST_CASE("board presence: silence counts while it lasts and when it has ended") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 1, 0, 4 * second, 2);
    send(boards, 0, 0, 5 * second / 4, 0);
    CHECK(live(boards, 0, second)[0] == 1);
    CHECK(live(boards, second, 2 * second)[0] == Approx(0.25).epsilon(0.01));
    send(boards, 0, 11 * second / 4, 4 * second, 0);
    CHECK(live(boards, 2 * second, 3 * second)[0] == Approx(0.25).epsilon(0.01));
    CHECK(live(boards, 3 * second, 4 * second)[0] == 1);
}

TEST_CASE("board presence: a board that never sends, and one that begins late") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 1, 5 * second / 2, 4 * second, 2);
    CHECK(live(boards, 2 * second, 3 * second)[2] == Approx(0.5).epsilon(0.01));
    CHECK(live(boards, 3 * second, 4 * second)[0] == 0);
    // Boards that begin within the pause have begun together.
    BoardPresence together(second, longest_pause, 3, listed);
    send(together, 0, 0, second, 0);
    send(together, 1, longest_pause / 2, second, 2);
    CHECK(live(together, 0, second)[2] == 1);
}

TEST_CASE("board presence: the pauses of a low rate are no silence") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 0, 0, 20 * second, 0);
    // One frame in 0.15 s, more than the pause.
    for (std::uint64_t t = 0; t < 20 * second; t += 150'000)
        boards.add({1, t, t, 1, 1, 0, 2, 2, true});
    for (std::uint64_t k = 0; k < 19; ++k)
        CHECK(live(boards, k * second, (k + 1) * second)[2] == 1);
}

TEST_CASE("board presence: a second that a run divides keeps its share in both parts") {
    BoardPresence boards(second, longest_pause, 3, listed);
    send(boards, 1, 0, 2 * second, 2);
    for (std::uint64_t t = 0; t < 2 * second; t += 1000) {
        if (t % 10'000 == 5000) continue;
        boards.add({0, t, t + 900, 1, 10, t % 10'000 == 6000 ? 1 : 0, 0, 0, true});
    }
    CHECK(live(boards, 0, second / 3)[0] == Approx(0.9));
    CHECK(live(boards, second / 3, second)[0] == Approx(0.9));
}

TEST_CASE(
    "board presence: modules of sources that are not listed are learnt, and forgotten with their time") {
    BoardPresence boards(second, longest_pause, 3, {});
    send(boards, 7, 0, second, 2);
    CHECK(live(boards, 0, second)[2] == 1);
    CHECK(std::isnan(live(boards, second, second + 1)[0]));
    boards.clear();
    CHECK(std::isnan(live(boards, 0, second)[2]));
}
