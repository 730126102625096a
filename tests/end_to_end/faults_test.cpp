// Faults of the network and of the boards: every counter is what the simulator expects.
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

struct Job {
    json ledger;
    json summary;
    TruthCounts truth;
};

/// One run of the daemon over one stream.
Job do_job(const Site& site, Daemon& daemon, const std::vector<std::string>& arguments,
           const std::string& name) {
    const auto before = daemon.status()["total"]["datagrams"]["received"].get<std::uint64_t>();
    daemon.start(name);
    Job job;
    job.summary = simulate(site, short_stream(daemon, arguments), name);
    const auto sent = job.summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    REQUIRE(daemon.received(before + sent));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json run = site.run_json(name);
    CHECK(run["state"] == "complete");
    job.ledger = run["ledger"];
    job.truth = count_truth(site.directory() / (name + ".truth"));
    return job;
}

void compare_with_truth(const Site& site, const std::string& name) {
    const Outcome compare =
        run_program(PETSIM_PROGRAM, {"compare", "--truth", (site.directory() / (name + ".truth")).string(),
                                     "--run", site.run(name).string()});
    INFO(compare.out);
    CHECK(compare.status == 0);
}

/// Six seconds: further than max_jump.
const std::string jump_ticks = "384000000000";

}  // namespace

TEST_CASE("all faults in one stream: every counter has the expected value, every identity closes",
          "[e2e][faults]") {
    const Site site;
    Daemon daemon(site);
    std::vector<std::string> arguments{"--loss",         "0.02",
                                       "--duplicate",    "0.02",
                                       "--reorder",      "0.03",
                                       "--reorder-span", "5",
                                       "--silent",       "2@0.1-0.35",
                                       "--clock-jump",   "1@0.25:" + jump_ticks + ":2",
                                       "--clock-jump",   "3@0.3:-" + jump_ticks + ":1",
                                       "--start-time-s", "60"};
    for (const char* field : {"marker", "bdm", "du", "x", "time", "energy", "magic", "version", "length"})
        arguments.insert(arguments.end(), {"--corrupt", std::string(field) + ":0.01"});
    const Job job = do_job(site, daemon, arguments, "all");
    check_ledger(job.ledger, job.summary, job.truth);
    compare_with_truth(site, "all");

    // The stream contained all of these faults.
    const json& total = job.summary["total"];
    for (const char* count : {"datagrams_lost", "duplicated", "held_back", "hits_silenced"}) {
        INFO(count);
        CHECK(total[count] > 0);
    }
    for (const auto& [field, count] : total["corrupted"].items()) {
        INFO(field);
        CHECK(count > 0);
    }
    CHECK(total["clock_jumped"] == 3);
    CHECK(job.truth.time_jump > 50);
    CHECK(job.truth.unreadable > 20);
    CHECK(job.ledger["datagrams"]["end_of_stream"] == 4);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("each fault alone", "[e2e][faults]") {
    const Site site;
    struct Fault {
        std::string name;
        std::vector<std::string> arguments;
        std::string section;
        std::string counter;  // counter of the ledger that must not be zero
    };
    const std::vector<Fault> faults{
        {"loss", {"--loss", "0.05"}, "datagrams", "lost"},
        {"duplicate", {"--duplicate", "0.1"}, "datagrams", "duplicate"},
        {"reorder", {"--reorder", "0.2", "--reorder-span", "8"}, "datagrams", "reordered"},
        {"marker", {"--corrupt", "marker:0.2"}, "frames", "bad_marker"},
        {"bdm", {"--corrupt", "bdm:0.2"}, "frames", "bad_address"},
        {"du", {"--corrupt", "du:0.2"}, "frames", "bad_address"},
        {"x", {"--corrupt", "x:0.2"}, "frames", "bad_address"},
        {"time", {"--corrupt", "time:0.2"}, "frames", "time_jump"},
        {"energy", {"--corrupt", "energy:0.2"}, "frames", "above_window"},
        {"magic", {"--corrupt", "magic:0.1"}, "datagrams", "malformed"},
        {"version", {"--corrupt", "version:0.1"}, "datagrams", "malformed"},
        {"length", {"--corrupt", "length:0.1"}, "datagrams", "malformed"},
        {"jump", {"--clock-jump", "0@0.05:" + jump_ticks + ":2"}, "frames", "time_jump"},
    };
    for (const Fault& fault : faults) {
        INFO(fault.name);
        Daemon daemon(site);
        std::vector<std::string> arguments = fault.arguments;
        arguments.insert(arguments.end(), {"--duration-s", "0.15", "--skew-us", "2000"});
        const Job job = do_job(site, daemon, arguments, fault.name);
        check_ledger(job.ledger, job.summary, job.truth);
        CHECK(job.ledger[fault.section][fault.counter] > 0);
        compare_with_truth(site, fault.name);
        CHECK(daemon.terminate() == 0);
    }
}

TEST_CASE(
    "a lasting jump of a clock is accepted after some datagrams, and does not hold up the other sources",
    "[e2e][faults]") {
    const Site site;
    Daemon daemon(site);
    const Job job =
        do_job(site, daemon, {"--clock-jump", "1@0.2:" + jump_ticks, "--duration-s", "0.4"}, "jump");
    INFO(job.ledger.dump(1));
    CHECK(job.ledger["closed"] == true);
    // A source ahead of all others is not trusted: none of its frames is accepted.
    CHECK(job.ledger["frames"]["time_jump"] == job.truth.time_jump);
    CHECK(job.ledger["frames"]["late"] == 0);
    CHECK(job.ledger["frames"]["accepted"] == job.truth.accepted);
    CHECK(job.ledger["datagrams"]["received"] == job.summary["total"]["expected"]["datagrams_received"]);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE(
    "a board that is reset: its sequence starts again, its frames are counted, the others are untouched",
    "[e2e][faults]") {
    const Site site;
    Daemon daemon(site);
    const Job job = do_job(site, daemon, {"--reset", "2@0.2", "--start-time-s", "100"}, "reset");
    INFO(job.ledger.dump(1));
    const json& d = job.ledger["datagrams"];
    const json& f = job.ledger["frames"];
    const json& expected = job.summary["total"]["expected"];
    CHECK(job.ledger["closed"] == true);
    CHECK(d["received"] == expected["datagrams_received"]);
    CHECK(d["restarted"] == 1);
    CHECK(d["lost"] == expected["datagrams_lost"]);
    CHECK(d["duplicate"] == 0);
    CHECK(f["received"] == expected["frames_received"]);
    // A hundred seconds late, which is known when a few datagrams have agreed.
    CHECK(job.truth.after_reset > 1000);
    CHECK(f["late"] == job.truth.after_reset);
    CHECK(f["time_jump"] == 0);
    CHECK(f["accepted"] == job.truth.accepted);
    compare_with_truth(site, "reset");
    CHECK(daemon.terminate() == 0);
}
