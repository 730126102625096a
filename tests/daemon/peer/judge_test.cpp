// When a half of a run is missing.
#include "daemon/peer/judge.hpp"

#include "daemon/peer/run_names.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;

namespace {

using Clock = PeerState::Clock;

Clock::time_point at(double seconds) {
    return Clock::time_point(std::chrono::hours(1)) +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// A host and its peer.
class Pair {
  public:
    void peer_says(const PeerAnswer& answer) { judge_.hear(answer, at(time)); }
    void peer_records(const std::string& run) { peer_says({"", run, "recording"}); }
    /// Lets this time pass.
    bool missing_after(double seconds) {
        time += seconds;
        return judge_.judge(own, at(time)).is_missing(at(time));
    }
    std::string situation() { return name_of(judge_.judge(own, at(time)).situation); }
    Clock::time_point heard() { return judge_.judge(own, at(time)).heard; }

    OwnHalf own{"mouse-7", true};
    double time = 0;

  private:
    PeerJudge judge_{"http://hostB:9680", at(0)};
};

}  // namespace

TEST_CASE("runs of a pair are the same with the number of a join") {
    CHECK(same_run("mouse-7", "mouse-7"));
    CHECK(same_run("mouse-7", "mouse-7-2"));
    CHECK(same_run("mouse-7-12", "mouse-7"));
    CHECK(same_run("mouse-7-2", "mouse-7-2"));
    CHECK_FALSE(same_run("mouse-7", "mouse-8"));
    CHECK_FALSE(same_run("mouse-7", "mouse-70"));
    CHECK_FALSE(same_run("mouse-7", "mouse-7-b"));
    CHECK_FALSE(same_run("mouse-7", "mouse-7-"));
    CHECK_FALSE(same_run("mouse-7", "rat-7-2"));
}

TEST_CASE("nothing is missing while both record one run, or none") {
    Pair pair;
    pair.peer_records("mouse-7-2");
    CHECK_FALSE(pair.missing_after(100));
    CHECK(pair.situation() == "recording");
    pair.own = {};
    CHECK_FALSE(pair.missing_after(100));
    CHECK(pair.situation() == "recording");
    pair.peer_says({"", "", "not_recording"});
    CHECK_FALSE(pair.missing_after(100));
    pair.peer_says(peer_failure("no"));
    CHECK_FALSE(pair.missing_after(100));
    CHECK(pair.situation() == "unreachable");
}

TEST_CASE("a half is missing if the peer does not answer, has no run, or another one") {
    const auto& [answer, situation] =
        GENERATE(table<PeerAnswer, std::string>({{peer_failure("no"), "unreachable"},
                                                 {{"", "", "not_recording"}, "not_recording"},
                                                 {{"", "mouse-6", "recording"}, "other_run"},
                                                 {{"", "mouse-7", "no_data"}, "not_recording"},
                                                 {{"", "mouse-7", "not_recording"}, "not_recording"}}));
    Pair pair;
    pair.peer_records("mouse-7");
    CHECK_FALSE(pair.missing_after(10));
    pair.peer_says(answer);
    CHECK_FALSE(pair.missing_after(0));
    CHECK(pair.situation() == situation);
    CHECK_FALSE(pair.missing_after(2.9));
    CHECK(pair.missing_after(0.2));
    CHECK(pair.missing_after(100));
    pair.peer_records("mouse-7");
    CHECK_FALSE(pair.missing_after(0));
    // One answer that is lost is no reason, nor are two with an answer between them.
    pair.peer_says(answer);
    CHECK_FALSE(pair.missing_after(2));
    pair.peer_records("mouse-7");
    CHECK_FALSE(pair.missing_after(1));
    pair.peer_says(answer);
    CHECK_FALSE(pair.missing_after(2));
}

TEST_CASE("a start and a stop give the peer some time") {
    Pair pair;
    pair.own = {};
    pair.peer_says({"", "", "not_recording"});
    CHECK_FALSE(pair.missing_after(100));
    pair.own = {"mouse-7", true};
    CHECK_FALSE(pair.missing_after(1));
    CHECK_FALSE(pair.missing_after(2.9));
    CHECK(pair.missing_after(0.2));
    pair.own = {};
    CHECK_FALSE(pair.missing_after(0));
}

TEST_CASE("a peer that has the run misses nothing while nobody has data") {
    Pair pair;
    pair.own.records = false;
    pair.peer_says({"", "mouse-7", "no_data"});
    CHECK_FALSE(pair.missing_after(100));
    pair.own.records = true;
    CHECK_FALSE(pair.missing_after(1));
    CHECK(pair.missing_after(3.1));
    pair.own.records = false;
    CHECK_FALSE(pair.missing_after(0));
    pair.peer_says(peer_failure("no"));
    CHECK_FALSE(pair.missing_after(0));
    CHECK(pair.missing_after(3.1));
}

TEST_CASE("only answers count as heard") {
    Pair pair;
    CHECK(pair.heard() == at(0));
    pair.time = 5;
    pair.peer_says(peer_failure("no"));
    CHECK(pair.heard() == at(0));
    pair.peer_records("mouse-7");
    CHECK(pair.heard() == at(5));
    pair.time = 9;
    pair.peer_says(peer_failure("no"));
    CHECK(pair.heard() == at(5));
}
