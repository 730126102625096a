// When runs may start and stop: every event in every phase, and the ways through the phases.
#include "daemon/service/run_lifecycle.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using Phase = RunLifecycle::Phase;

namespace {

constexpr std::uint64_t latest = 1000;

std::string name_of(Phase phase) {
    static const std::map<Phase, std::string> names{
        {Phase::idle, "idle"},         {Phase::creating, "creating"},     {Phase::running, "running"},
        {Phase::stopping, "stopping"}, {Phase::finalising, "finalising"}, {Phase::failed, "failed"}};
    return names.at(phase);
}

/// What is to be done, in words.
std::string text(const RunDecision& decision) {
    if (!decision.refusal.empty()) return "refused: " + decision.refusal;
    std::string text;
    const auto add = [&](bool wanted, const char* name) {
        if (wanted) text += (text.empty() ? "" : ", ") + std::string(name);
    };
    add(decision.create_files, "create files");
    add(decision.accept_start, "accept start");
    add(decision.refuse_start, "refuse start");
    add(decision.end_run, "end run");
    add(decision.ended_itself, "ended itself");
    add(decision.finalise, "finalise");
    add(decision.discard, "discard");
    add(decision.now_idle, "now idle");
    add(decision.report_failure, "report failure");
    add(decision.take_calibration, "take calibration");
    return text.empty() ? "nothing" : text;
}

/// The run "r1" in a phase.
RunLifecycle in(Phase phase) {
    RunLifecycle lifecycle;
    if (phase == Phase::idle) return lifecycle;
    if (phase == Phase::failed) {
        REQUIRE(lifecycle.pipeline_failed("no GPU").report_failure);
        return lifecycle;
    }
    REQUIRE(lifecycle.start_asked("r1").create_files);
    if (phase == Phase::creating) return lifecycle;
    REQUIRE(text(lifecycle.files_created("r1")) == "nothing");
    if (phase == Phase::running) return lifecycle;
    REQUIRE(lifecycle.stop_asked({}, {}, latest).end_run);
    if (phase == Phase::stopping) return lifecycle;
    REQUIRE(lifecycle.finished(false).finalise);
    return lifecycle;
}

struct Event {
    const char* name;
    std::function<RunDecision(RunLifecycle&)> happen;
};

const std::vector<Event>& events() {
    static const std::vector<Event> all{
        {"start asked", [](RunLifecycle& l) { return l.start_asked("r2"); }},
        {"stop asked", [](RunLifecycle& l) { return l.stop_asked("r1", latest, latest); }},
        {"stop of another asked", [](RunLifecycle& l) { return l.stop_asked("r2", {}, latest); }},
        {"late stop asked", [](RunLifecycle& l) { return l.stop_asked({}, latest + 1, latest); }},
        {"shut down", [](RunLifecycle& l) { return l.shut_down("SIGTERM"); }},
        {"calibration", [](RunLifecycle& l) { return l.calibration_offered(true); }},
        {"created", [](RunLifecycle& l) { return l.files_created("r1"); }},
        {"not created", [](RunLifecycle& l) { return l.files_not_created(); }},
        {"started", [](RunLifecycle& l) { return l.started("r1"); }},
        {"another started", [](RunLifecycle& l) { return l.started("r0"); }},
        {"finished", [](RunLifecycle& l) { return l.finished(false); }},
        {"never began", [](RunLifecycle& l) { return l.finished(true); }},
        {"finalised", [](RunLifecycle& l) { return l.finalised(false); }},
        {"discarded", [](RunLifecycle& l) { return l.discarded(); }},
        {"pipeline failed", [](RunLifecycle& l) { return l.pipeline_failed("no GPU"); }},
    };
    return all;
}

/// What is expected of an event: what is to be done, and the phase that follows.
struct Expected {
    std::string decision;
    Phase next;
};

/// Events that are not listed do nothing.
void check_phase(Phase phase, const std::map<std::string, Expected>& expected) {
    for (const auto& [name, ignored] : expected)
        REQUIRE(std::count_if(events().begin(), events().end(),
                              [&, n = name](const Event& event) { return event.name == n; }) == 1);
    for (const Event& event : events()) {
        RunLifecycle lifecycle = in(phase);
        INFO(name_of(phase) << ", " << event.name);
        const auto found = expected.find(event.name);
        const Expected& wanted = found == expected.end() ? Expected{"nothing", phase} : found->second;
        CHECK(text(event.happen(lifecycle)) == wanted.decision);
        CHECK(name_of(lifecycle.phase()) == name_of(wanted.next));
    }
}

const std::string not_r2 = "refused: the run in progress is r1, not r2";
const std::string too_late = "refused: stop_ticks 1001: expected at most 1000, a minute from now";
const std::string no_run = "refused: no run is in progress";

}  // namespace

TEST_CASE("every event while there is no run", "[lifecycle]") {
    check_phase(Phase::idle, {{"start asked", {"create files", Phase::creating}},
                              {"stop asked", {no_run, Phase::idle}},
                              {"stop of another asked", {no_run, Phase::idle}},
                              {"late stop asked", {no_run, Phase::idle}},
                              {"shut down", {"now idle", Phase::idle}},
                              {"calibration", {"take calibration", Phase::idle}},
                              {"pipeline failed", {"report failure", Phase::failed}}});
    const std::string failed = "refused: the pipeline has failed (no GPU); restart the daemon";
    check_phase(Phase::failed, {{"start asked", {failed, Phase::failed}},
                                {"stop asked", {no_run, Phase::failed}},
                                {"stop of another asked", {no_run, Phase::failed}},
                                {"late stop asked", {no_run, Phase::failed}},
                                {"shut down", {"now idle", Phase::failed}}});
}

TEST_CASE("every event while files are being created", "[lifecycle]") {
    check_phase(Phase::creating, {{"start asked", {"refused: another run is being started", Phase::creating}},
                                  {"stop of another asked", {not_r2, Phase::creating}},
                                  {"late stop asked", {too_late, Phase::creating}},
                                  {"created", {"nothing", Phase::running}},
                                  {"not created", {"refuse start, now idle", Phase::idle}}});
}

TEST_CASE("every event while the acquisition has the run", "[lifecycle]") {
    check_phase(Phase::running,
                {{"start asked", {"refused: run r1 is in progress; stop it first", Phase::running}},
                 {"stop asked", {"end run", Phase::stopping}},
                 {"stop of another asked", {not_r2, Phase::running}},
                 {"late stop asked", {too_late, Phase::running}},
                 {"shut down", {"end run", Phase::stopping}},
                 {"started", {"accept start", Phase::running}},
                 {"finished", {"refuse start, ended itself, finalise", Phase::finalising}},
                 {"never began", {"ended itself, discard", Phase::finalising}}});
    const std::string being_finalised = "refused: run r1 is being finalised; stop it first";
    check_phase(Phase::stopping, {{"start asked", {being_finalised, Phase::stopping}},
                                  {"stop of another asked", {not_r2, Phase::stopping}},
                                  {"late stop asked", {too_late, Phase::stopping}},
                                  {"started", {"accept start", Phase::stopping}},
                                  {"finished", {"refuse start, finalise", Phase::finalising}},
                                  {"never began", {"discard", Phase::finalising}}});
    check_phase(Phase::finalising, {{"start asked", {being_finalised, Phase::finalising}},
                                    {"stop of another asked", {not_r2, Phase::finalising}},
                                    {"late stop asked", {too_late, Phase::finalising}},
                                    {"finalised", {"now idle", Phase::idle}},
                                    {"discarded", {"refuse start, now idle", Phase::idle}}});
}

TEST_CASE("a run that is to end before its files are there ends when they are", "[lifecycle]") {
    RunLifecycle lifecycle = in(Phase::creating);
    CHECK(text(lifecycle.stop_asked("r1", {}, latest)) == "nothing");
    CHECK(text(lifecycle.files_created("r1")) == "end run");
    CHECK(lifecycle.end_reason() == "stopped by operator");
    CHECK(lifecycle.phase() == Phase::stopping);

    CHECK_FALSE(lifecycle.end_ticks());

    // A stop at a time of the detector keeps that time, unless the daemon is to exit.
    RunLifecycle timed = in(Phase::creating);
    CHECK(text(timed.stop_asked("r1", latest, latest)) == "nothing");
    CHECK(text(timed.files_created("r1")) == "end run");
    CHECK(timed.end_ticks() == latest);
    RunLifecycle exiting = in(Phase::creating);
    CHECK(text(exiting.stop_asked("r1", latest, latest)) == "nothing");
    CHECK(text(exiting.shut_down("SIGTERM")) == "nothing");
    CHECK(text(exiting.files_created("r1")) == "end run");
    CHECK_FALSE(exiting.end_ticks());

    RunLifecycle stopped = in(Phase::creating);
    CHECK(text(stopped.shut_down("SIGTERM")) == "nothing");
    CHECK(text(stopped.files_created("r1")) == "end run");
    CHECK(stopped.end_reason() == "SIGTERM");

    // The stop of a run that was not created is not that of the next one.
    RunLifecycle refused = in(Phase::creating);
    CHECK(text(refused.stop_asked({}, latest, latest)) == "nothing");
    CHECK(text(refused.files_not_created()) == "refuse start, now idle");
    CHECK(refused.start_asked("r2").create_files);
    CHECK(text(refused.files_created("r2")) == "nothing");
    CHECK_FALSE(refused.end_ticks());
}

TEST_CASE("a run that the daemon names is stopped by its name once that is known", "[lifecycle]") {
    RunLifecycle lifecycle;
    REQUIRE(lifecycle.start_asked({}).create_files);
    CHECK(text(lifecycle.stop_asked("r1", {}, latest)) ==
          "refused: the run in progress is another one, not r1");
    REQUIRE(text(lifecycle.files_created("r1")) == "nothing");
    CHECK(lifecycle.run() == "r1");
    CHECK(text(lifecycle.stop_asked("r1", {}, latest)) == "end run");
}

TEST_CASE("while the daemon shuts down, runs end and none starts", "[lifecycle]") {
    const auto phase = GENERATE(Phase::idle, Phase::creating, Phase::running, Phase::stopping,
                                Phase::finalising, Phase::failed);
    INFO(name_of(phase));
    RunLifecycle lifecycle = in(phase);
    const bool idle = lifecycle.shut_down("SIGTERM").now_idle;
    CHECK(idle == (phase == Phase::idle || phase == Phase::failed));
    CHECK(lifecycle.start_asked("r2").refusal == "the daemon is shutting down");
    if (idle) return;
    if (phase == Phase::creating) CHECK(lifecycle.files_created("r1").end_run);
    if (phase != Phase::finalising) CHECK(lifecycle.finished(false).finalise);
    CHECK(lifecycle.finalised(false).now_idle);
    CHECK(lifecycle.start_asked("r2").refusal == "the daemon is shutting down");
}

TEST_CASE("the failure of the pipeline is reported once, when no run is left", "[lifecycle]") {
    const auto phase = GENERATE(Phase::creating, Phase::running, Phase::stopping, Phase::finalising);
    INFO(name_of(phase));
    RunLifecycle lifecycle = in(phase);
    CHECK(lifecycle.calibration_offered(true) == RunDecision());
    CHECK(lifecycle.pipeline_failed("no GPU") == RunDecision());
    CHECK(lifecycle.failed());
    CHECK(lifecycle.start_asked("r2").refusal == "the pipeline has failed (no GPU); restart the daemon");
    RunDecision last;
    if (phase == Phase::creating) {
        last = lifecycle.files_not_created();
    } else {
        if (phase != Phase::finalising) CHECK(lifecycle.finished(false).finalise);
        last = lifecycle.finalised(true);
    }
    CHECK(last.now_idle);
    CHECK(last.report_failure);
    CHECK_FALSE(last.take_calibration);
    CHECK(lifecycle.phase() == Phase::failed);
    CHECK(lifecycle.pipeline_failed("no GPU") == RunDecision());
}

TEST_CASE("a calibration that comes during a run waits for its end", "[lifecycle]") {
    const auto phase = GENERATE(Phase::creating, Phase::running, Phase::stopping, Phase::finalising);
    INFO(name_of(phase));
    const auto end = [&](RunLifecycle& lifecycle) {
        if (phase == Phase::creating) return lifecycle.files_not_created();
        if (phase != Phase::finalising) CHECK(lifecycle.finished(true).discard);
        return lifecycle.discarded();
    };
    RunLifecycle lifecycle = in(phase);
    CHECK(lifecycle.calibration_offered(true) == RunDecision());
    CHECK(end(lifecycle).take_calibration);
    RunLifecycle withdrawn = in(phase);
    CHECK(withdrawn.calibration_offered(true) == RunDecision());
    CHECK(withdrawn.calibration_offered(false) == RunDecision());
    CHECK_FALSE(end(withdrawn).take_calibration);
}

TEST_CASE("the last run says whether the daemon has failed", "[lifecycle]") {
    RunLifecycle lifecycle = in(Phase::finalising);
    CHECK(lifecycle.finalised(true).now_idle);
    CHECK(lifecycle.failed());
    REQUIRE(lifecycle.start_asked("r2").create_files);
    REQUIRE(text(lifecycle.files_created("r2")) == "nothing");
    REQUIRE(lifecycle.finished(false).finalise);
    CHECK(lifecycle.failed());
    CHECK(text(lifecycle.finalised(false)) == "now idle");
    CHECK_FALSE(lifecycle.failed());
}
