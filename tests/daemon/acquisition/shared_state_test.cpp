// State that the acquisition thread shares with others: commands, snapshots; and its ledger.
#include <string>
#include <vector>

#include "daemon/acquisition/account.hpp"
#include "daemon/acquisition/command_queue.hpp"
#include "daemon/acquisition/snapshot.hpp"
#include "net/receive/receiver.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<const gpu::SinglesHistograms> new_histograms() {
    return std::make_shared<gpu::SinglesHistograms>();
}

}  // namespace

TEST_CASE("commands run in the order in which they were posted, once") {
    CommandQueue commands;
    std::vector<std::string> ran;
    commands.run_all();
    commands.post([&] {
        ran.emplace_back("first");
        commands.post([&] { ran.emplace_back("from a command"); });
    });
    commands.post([&] { ran.emplace_back("second"); });
    CHECK(ran.empty());
    commands.run_all();
    CHECK(ran == std::vector<std::string>{"first", "second", "from a command"});
    commands.run_all();
    CHECK(ran.size() == 3);
}

TEST_CASE("a command that throws loses no other") {
    CommandQueue commands;
    bool ran = false;
    commands.post([] { throw std::runtime_error("no"); });
    commands.post([&] { ran = true; });
    CHECK_THROWS(commands.run_all());
    commands.run_all();
    CHECK(ran);
}

TEST_CASE("a snapshot has the latest two readings of the histograms") {
    SnapshotBoard board;
    CHECK(board.latest() == nullptr);
    const auto first = new_histograms();
    const auto second = new_histograms();
    const auto publish = [&](const std::shared_ptr<const gpu::SinglesHistograms>& histograms) {
        auto snapshot = std::make_shared<AcquisitionSnapshot>();
        snapshot->histograms = histograms;
        board.publish(std::move(snapshot));
        return board.latest();
    };
    CHECK(publish(first)->histograms == first);
    CHECK(publish(nullptr)->histograms == first);
    CHECK(board.latest()->histograms_before == nullptr);
    CHECK(publish(second)->histograms == second);
    CHECK(board.latest()->histograms_before == first);
    CHECK(publish(nullptr)->histograms == second);
    CHECK(board.latest()->histograms_before == first);
}

TEST_CASE("a snapshot has the latest seconds, whoever publishes it") {
    SnapshotBoard board;
    auto first = std::make_shared<AcquisitionSnapshot>();
    first->watermark = 7;
    board.publish(std::move(first));
    CHECK(board.latest()->second == nullptr);
    SecondsView seconds;
    seconds.second = std::make_shared<const Second>();
    seconds.seconds.length_s = 3;
    CHECK(board.publish(seconds));
    CHECK(board.latest()->watermark == 7);
    CHECK(board.latest()->second == seconds.second);
    CHECK_FALSE(board.publish(seconds));  // the same one
    board.publish(std::make_shared<AcquisitionSnapshot>());
    CHECK(board.latest()->watermark == 0);
    CHECK(board.latest()->second == seconds.second);
    CHECK(board.latest()->seconds.length_s == 3);
}

TEST_CASE("snapshots are due ten times a second, histograms once") {
    SnapshotBoard board;
    const auto start = std::chrono::steady_clock::now() + 1h;
    CHECK(board.due(start));
    CHECK(board.histograms_due(start));
    CHECK_FALSE(board.due(start + 99ms));
    CHECK(board.due(start + 100ms));
    CHECK_FALSE(board.due(start + 199ms));
    CHECK_FALSE(board.histograms_due(start + 999ms));
    CHECK(board.histograms_due(start + 1s));
}

TEST_CASE("busy time adds up, the present part included") {
    BusyTime busy;
    const auto now = BusyTime::Clock::now();
    CHECK(busy.seconds(now + 1h) == 0);
    busy.start();
    CHECK(busy.seconds(now + 1h) > 3599);
    busy.stop();
    const double so_far = busy.seconds(now);
    CHECK(so_far >= 0);
    CHECK(busy.seconds(now + 1h) == so_far);
}

TEST_CASE("the account adds up receivers, sources and pipeline, and closes") {
    net::ReceiverCounters one;
    net::ReceiverCounters two;
    one.datagrams_delivered.add(5);
    one.datagrams_malformed.add(2);
    one.datagrams_received.add(7);
    one.bytes_received.add(700);
    two.datagrams_delivered.add(4);
    two.datagrams_dropped_no_buffer.add(1);
    two.datagrams_received.add(5);
    two.bytes_received.add(50);
    Account account({&one, &two}, net::Framing::sequenced);
    CHECK(account.bytes_received() == 750);
    for (int i = 0; i < 7; ++i)
        account.add_datagram({});
    account.add_frames(600);
    TrackerTotals sources;
    sources.accepted = 6;
    sources.duplicate = 1;
    gpu::SliceResult result;
    result.frames.received = result.frames.accepted = 500;
    result.counts.decided = 480;
    result.counts.prompts = 40;
    result.counts.unpaired = 400;
    result.singles.resize(480);
    account.add(result);
    const Ledger ledger = account.total(Account::ReadingMode::one_moment, sources, 100, {20, 0});
    CHECK(ledger.datagrams.received == 12);
    CHECK(ledger.datagrams.in_flight_at_end == 2);
    CHECK(ledger.datagrams.accepted == 6);
    CHECK(ledger.pairs.prompts_found == 40);
    CHECK(ledger.saved_singles.found == 480);
    CHECK(ledger.loss_known());
    Ledger written = ledger;
    written.pairs.written = 40;
    written.saved_singles.written = 480;
    CHECK(written.open_identities().empty());
    CHECK_FALSE(Account({}, net::Framing::bare).total(Account::ReadingMode::quick, {}, 0, {}).loss_known());
}
