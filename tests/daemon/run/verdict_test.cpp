#include "daemon/run/verdict.hpp"

#include <algorithm>
#include <string>

#include "tests/support/catch.hpp"

namespace petacq::daemon {
namespace {

using State = RunVerdict::State;

/// A run of two listed boards, in which all is well.
struct FinishedRunOfTwo {
    Ledger ledger;
    SeenInRun seen;
    std::string failure;

    FinishedRunOfTwo() {
        ledger.datagrams.received = ledger.datagrams.accepted = 10'000;
        ledger.datagrams.frames = ledger.frames.received = ledger.frames.accepted = 1'000'000;
        ledger.singles.pending_at_end = 1'000'000;
        seen.live = 1;
        seen.sources.expected = 2;
        for (const std::uint16_t id : {std::uint16_t{3}, std::uint16_t{5}}) {
            SourceStatus source;
            source.id = id;
            seen.sources_at_start.sources.push_back(source);
            source.datagrams = 5'000;
            source.lost = 0;
            seen.sources.sources.push_back(source);
        }
    }
    [[nodiscard]] RunVerdict verdict() const { return judge({ledger, seen, 0.001, failure, "", "", 0}); }
    /// The message of the reason; empty: there is none.
    [[nodiscard]] std::string reason(const std::string& code) const {
        for (const RunVerdict::Reason& one : verdict().reasons)
            if (one.code == code) return one.message;
        return "";
    }
    void lose(std::uint64_t datagrams) {
        ledger.datagrams.lost = datagrams;
        ledger.datagrams.received = ledger.datagrams.accepted = 10'000 - datagrams;
    }
};

}  // namespace

TEST_CASE("a run in which all is well is good", "[run][verdict]") {
    const FinishedRunOfTwo run;
    CHECK(run.ledger.open_identities().empty());
    CHECK(run.verdict().state == State::good);
    CHECK(run.verdict().reasons.empty());
}

TEST_CASE("times in another unit, or that stand still, make a run bad", "[run][verdict]") {
    FinishedRunOfTwo run;
    SourceStatus& source = run.seen.sources.sources[1];
    source.latest_rate = ClockRate::Wrong{1e9, 64e9};
    CHECK(run.verdict().state == State::good);  // before the run
    source.wrong_seconds = 2;
    CHECK(run.verdict().state == State::bad);
    CHECK(test::contains(run.reason("source_clock"),
                         "source 5: its clock makes 1e+09 ticks a second, 6.4e+10 are expected"));
    source.latest_rate = ClockRate::Wrong{0, 64e9};
    CHECK(test::contains(run.reason("source_clock"), "source 5: its times stand still"));
}

TEST_CASE("known loss makes a run doubtful, a tenth of it bad", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.lose(5);  // below health.max_loss_fraction
    CHECK(run.verdict().state == State::good);
    run.lose(300);
    CHECK(run.verdict().state == State::doubtful);
    CHECK_THAT(run.reason("datagrams_lost"), contains("300 datagrams (3 %) lost"));
    run.lose(1'100);
    CHECK(run.verdict().state == State::bad);
}

TEST_CASE("late and jumped frames count like lost ones", "[run][verdict]") {
    for (const bool late : {true, false}) {
        for (const std::uint64_t share : {20'000U, 200'000U}) {
            FinishedRunOfTwo run;
            (late ? run.ledger.frames.late : run.ledger.frames.time_jump) = share;
            run.ledger.frames.accepted -= share;
            run.ledger.singles.pending_at_end -= share;
            INFO(late << ' ' << share);
            CHECK(run.verdict().state == (share == 20'000 ? State::doubtful : State::bad));
            CHECK(run.reason(late ? "late_frames" : "time_jumps") != "");
        }
    }
}

TEST_CASE("tags alone are no data, and copies and energies outside the window are named", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.ledger.datagrams.duplicate = 2'000;
    run.ledger.datagrams.received += 2'000;
    CHECK(run.verdict().state == State::doubtful);
    CHECK(run.reason("duplicate_datagrams") != "");
    run = FinishedRunOfTwo();
    run.ledger.frames.accepted = run.ledger.singles.pending_at_end = 10'000;
    run.ledger.frames.below_window = 300'000;
    CHECK(run.reason("energies_outside") == "");
    run.ledger.frames.below_window = 990'000;
    CHECK(run.verdict().state == State::doubtful);
    CHECK_THAT(run.reason("energies_outside"), contains("99 % below, 0 % above"));
    run = FinishedRunOfTwo();
    run.ledger.frames = {};
    run.ledger.singles.pending_at_end = 0;
    run.ledger.tags.received = run.ledger.datagrams.frames;
    CHECK(run.verdict().state == State::bad);
    CHECK(run.reason("only_tags") != "");
    CHECK(run.reason("no_data") == "");
}

TEST_CASE("drops of the kernel are named as such, and not as lost on the way", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.ledger.datagrams.dropped_kernel = run.ledger.datagrams.lost = 1'500;
    CHECK_THAT(run.reason("kernel_drops"), contains("1500 datagrams"));
    CHECK(run.reason("datagrams_lost").empty());
    CHECK(run.verdict().state == State::bad);
}

TEST_CASE("a listed board that sends nothing makes a run bad", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.seen.sources.sources[1].datagrams = 0;
    CHECK(run.verdict().state == State::bad);
    CHECK_THAT(run.reason("source_silent"), contains("source 5 sent nothing in the run"));
    run.seen.sources.expected = 1;  // it is not listed
    CHECK(run.reason("source_silent").empty());
}

TEST_CASE("unknown loss makes a run bad, whatever is counted as lost", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.ledger.datagrams.unnumbered = 500;
    run.seen.sources.sources[0].unnumbered = 500;
    run.seen.sources.sources[0].latest_numbers = {NumberFault::stands_still, 7, {}};
    CHECK(run.verdict().state == State::bad);
    CHECK_THAT(run.reason("sequence_meaningless"), contains("source 3") && contains("stands still at 7"));
}

TEST_CASE("datagrams that seem to have come twice make a run bad if they are many", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.ledger.datagrams.accepted = 10'000;
    for (const auto& [copies, state] :
         {std::pair(1U, State::good), std::pair(999U, State::doubtful), std::pair(1'000U, State::bad)}) {
        run.ledger.datagrams.duplicates_suspected = copies;
        CHECK(run.verdict().state == state);
    }
    CHECK_THAT(run.reason("duplicates_suspected"),
               contains("1000 datagrams (10 %) seem to have come twice") && contains("instead of any"));
}

TEST_CASE("boards that were silent for a time are missing data", "[run][verdict]") {
    FinishedRunOfTwo run;
    for (const auto& [live, state] :
         {std::pair(0.995, State::good), std::pair(0.95, State::doubtful), std::pair(0.7, State::bad)}) {
        run.seen.live = live;
        CHECK(run.verdict().state == state);
    }
    run.seen.live.reset();  // unknown
    CHECK(run.reason("data_missing").empty());
}

TEST_CASE("faults of the detector and failures are in the verdict, the bad ones first", "[run][verdict]") {
    FinishedRunOfTwo run;
    run.seen.detector = {{DetectorFault::FaultKind::few_prompts, 7, -0.4, 0, 12.5}};
    CHECK(run.verdict().state == State::doubtful);
    note_faults(run.seen.detector, {{DetectorFault::FaultKind::few_prompts, 7, -0.6, 0, 13.5}});
    REQUIRE(run.seen.detector.size() == 1);
    CHECK_THAT(run.reason("detector_few_prompts"), contains("-60 %"));
    run.failure = "no space left";
    const RunVerdict verdict = run.verdict();
    REQUIRE(verdict.reasons.size() == 2);
    CHECK(verdict.reasons.front().code == "run_failed");
    CHECK(verdict.state == State::bad);
}

}  // namespace petacq::daemon
