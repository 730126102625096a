// kill -9 in the middle of a run: everything that was on the disk is kept, a new daemon can start, and it
// reports the run until somebody acknowledges it.
#include <algorithm>
#include <csignal>

#include "daemon/listmode/reader.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a killed daemon leaves a readable prefix of the list-mode, and another daemon takes its place",
          "[e2e][crash]") {
    const Site site(json{{"listmode", {{"block_bytes", 4096}, {"sync_interval_ms", 20}}},
                         {"watermark", {{"max_disorder_us", 20000}}}});
    const std::vector<std::string> stream{"--seed", "5", "--duration-s", "4"};
    {
        Daemon daemon(site, "killed");
        daemon.start("killed");
        Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, stream)),
                       site.directory() / "petsim-killed");
        REQUIRE(daemon.until([](const json& s) { return s["ledger"]["pairs"]["written"] > 1500; }));
        REQUIRE(petsim.running());
        daemon.process().signal(SIGKILL);
        CHECK(daemon.process().wait() == -SIGKILL);
    }
    REQUIRE(std::filesystem::exists(site.socket()));
    CHECK(site.run_json("killed")["state"] == "running");

    const std::filesystem::path broken = site.run("killed") / "coincidences.plm";
    const std::string before = read_file(broken);
    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run("killed").string()});
    CHECK(verify.status == 1);
    const Outcome recover = run_program(PETLM_PROGRAM, {"recover", broken.string()});
    INFO(recover.out << recover.err);
    CHECK(recover.status == 0);
    CHECK(read_file(broken) == before);
    const std::filesystem::path recovered = site.run("killed") / "coincidences.recovered.plm";
    CHECK(run_program(PETLM_PROGRAM, {"verify", recovered.string()}).status == 0);
    const std::string saved = payload_of(recovered);
    CHECK(saved.size() >= 1500 * sizeof(petacq::gpu::Coincidence));
    CHECK(saved == payload_of(broken));

    // The socket and the lock that the first daemon left behind do not stop the next one.
    Daemon daemon(site, "next");
    CHECK(contains(daemon.log(), "stale socket"));
    daemon.start("undisturbed");
    const json summary = simulate(site, short_stream(daemon, stream));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const std::string whole = payload_of(site.run("undisturbed") / "coincidences.plm");
    CHECK(whole.size() > saved.size());
    CHECK(whole.substr(0, saved.size()) == saved);
    CHECK(daemon.refusal("start", {{"run", "killed"}}) != "");
    CHECK(daemon.terminate() == 0);
}

namespace {

bool reports_interrupted(const json& status) {
    return contains(status["health"]["reasons"].dump(), "run_interrupted");
}

/// Takes data into the run "killed", and kills the daemon.
void interrupt_a_run(const Site& site) {
    Daemon daemon(site, "killed");
    daemon.start("killed");
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, {"--duration-s", "2"})),
                   site.directory() / "petsim-killed");
    // A row of the ledger over time, and records after it.
    REQUIRE(eventually([&] {
        const std::string rows = read_file(site.run("killed") / "ledger.csv");
        return std::count(rows.begin(), rows.end(), '\n') >= 2;
    }));
    daemon.process().signal(SIGKILL);
    CHECK(daemon.process().wait() == -SIGKILL);
}

}  // namespace

TEST_CASE("an interrupted run is reported until an operator acknowledges it", "[e2e][crash]") {
    const Site site(json{{"listmode", {{"block_bytes", 4096}, {"sync_interval_ms", 20}}},
                         {"watermark", {{"max_disorder_us", 20000}}}});
    interrupt_a_run(site);
    const std::string path = site.run("killed").string();
    {
        Daemon daemon(site, "second");
        json status;
        REQUIRE(daemon.until([&](const json& s) {
            status = s;
            return reports_interrupted(s);
        }));
        CHECK(status["health"]["state"] == "degraded");
        CHECK(contains(status["health"]["reasons"].dump(), "petlm recover " + path));
        CHECK(contains(status["health"]["reasons"].dump(), "petctl acknowledge killed"));
        CHECK(status["recording"]["state"] == "interrupted");
        CHECK(status["recording"]["run_id"] == "killed");
        CHECK(status["interrupted"]["count"] == 1);
        CHECK(status["interrupted"]["runs"][0]["id"] == "killed");
        CHECK(status["interrupted"]["runs"][0]["path"] == path);
        CHECK(status["interrupted"]["runs"][0]["start_utc"] == site.run_json("killed")["start_utc"]);
        CHECK(contains(daemon.log(), "degraded: run killed was interrupted"));
        CHECK(
            contains(petctl(site, {"status", "--full"}).out, "run_interrupted: run killed was interrupted"));
        CHECK(contains(petctl(site, {"runs"}).out, "interrupted"));

        // Good runs do not end the report.
        daemon.start("good");
        CHECK(daemon.status()["recording"]["state"] == "waiting_for_data");
        CHECK(daemon.status()["recording"]["run_id"] == "good");
        CHECK(contains(daemon.refusal("acknowledge", {{"run", "good"}}), "in progress"));
        CHECK(daemon.stop()["failure"].is_null());
        CHECK(reports_interrupted(daemon.status()));
        CHECK(contains(daemon.refusal("acknowledge", {{"run", "good"}}), "was not interrupted"));
        CHECK(contains(daemon.refusal("acknowledge", {{"run", "none"}}), "there is no run 'none'"));
        CHECK(contains(daemon.refusal("acknowledge", {{"run", "../killed"}}), "run id"));
        CHECK(daemon.terminate() == 0);
    }
    {
        Daemon daemon(site, "third");
        REQUIRE(daemon.until(reports_interrupted));
        const std::string command = daemon.status()["recording"]["command"];
        INFO(command);
        const std::string programs = std::filesystem::path(PETLM_PROGRAM).parent_path();
        const Outcome recovered = run_program(
            "/bin/sh",
            {"-c", "cd '" + site.directory().string() + "' && PATH='" + programs + "':$PATH && " + command});
        INFO(recovered.err);
        CHECK(recovered.status == 0);
        CHECK(
            run_program(PETLM_PROGRAM, {"verify", (site.directory() / "killed.recovered").string()}).status ==
            0);
        const Outcome acknowledged = petctl(site, {"acknowledge", "killed"});
        INFO(acknowledged.err);
        CHECK(acknowledged.status == 0);
        const json status = daemon.status();
        CHECK_FALSE(reports_interrupted(status));
        CHECK(status["interrupted"]["count"] == 0);
        CHECK(status["recording"]["state"] == "no_data");
        CHECK(petctl(site, {"acknowledge", "killed"}).status == 1);
        CHECK(daemon.terminate() == 0);
    }
    CHECK(site.run_json("killed")["state"] == "interrupted");
    CHECK(site.run_json("killed").contains("acknowledged_utc"));
    Daemon daemon(site, "fourth");
    // A call that goes to the same thread as the search, and is answered after it.
    const json runs = daemon.call("runs")["runs"];
    CHECK_FALSE(reports_interrupted(daemon.status()));
    CHECK(runs[0]["state"] == "interrupted");
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a recovered run has a state and a ledger of its own", "[e2e][crash]") {
    // The lower part of the spectrum serves as the gamma window.
    const Site site(json{{"listmode", {{"block_bytes", 4096}, {"sync_interval_ms", 20}, {"files", 3}}},
                         {"watermark", {{"max_disorder_us", 20000}}},
                         {"energy", {{"lower_keV", 430}, {"upper_keV", 650}}},
                         {"gammas",
                          {{"lower_keV", 200},
                           {"upper_keV", 400},
                           {"before_ticks", 50'000},
                           {"after_ticks", 100'000},
                           {"policy", "all"},
                           {"delay_ticks", 1'000'000}}}});
    interrupt_a_run(site);
    const Outcome recover = run_program(PETLM_PROGRAM, {"recover", site.run("killed").string()});
    INFO(recover.out << recover.err);
    REQUIRE(recover.status == 0);

    REQUIRE(std::filesystem::exists(site.run("killed") / "coincidences.3.plm"));
    CHECK(payload_of(site.run("killed") / "coincidences.plm") ==
          payload_of(site.run("killed.recovered") / "coincidences.plm"));
    const json run = site.run_json("killed.recovered");
    const auto records = coincidences_of(site.run("killed.recovered") / "coincidences.plm");
    CHECK(run["state"] == "recovered");
    CHECK(run["run_id"] == "killed");
    CHECK(run["recovered"]["state"] == "interrupted");
    CHECK(contains(run["stop_reason"], "interrupted"));
    REQUIRE(run["files"].size() == 3);
    CHECK(run["files"][1]["kind"] == "triples");
    CHECK(run["files"][2]["kind"] == "seconds");
    CHECK(run["files"][0]["records"] == records.size());
    CHECK(run["files"][0]["last_time"] == records.back().time);
    const json& pairs = run["ledger"]["pairs"];
    CHECK(pairs["written"] == records.size());
    CHECK(pairs["prompts_found"].get<std::uint64_t>() + pairs["delayeds_found"].get<std::uint64_t>() ==
          pairs["written"].get<std::uint64_t>() + pairs["write_failed"].get<std::uint64_t>());
    const std::string triples = payload_of(site.run("killed.recovered") / "triples.plm");
    CHECK(triples == payload_of(site.run("killed") / "triples.plm"));
    REQUIRE(triples.size() > 100 * sizeof(petacq::gpu::Triple));
    CHECK(run["files"][1]["records"] == triples.size() / sizeof(petacq::gpu::Triple));
    CHECK(run["ledger"]["triples"]["written"] == run["files"][1]["records"]);
    CHECK(run["ledger"]["frames"]["received"] > 100'000);
    CHECK(run["ledger"]["datagrams"]["lost"].is_number());
    CHECK(run["ledger"]["datagrams"]["received"].is_null());  // not in ledger.csv
    CHECK(run["ledger"]["closed"].is_null());
    CHECK(contains(run["ledger"]["open"][0], run["recovered"]["ledger_until_ticks"].dump()));

    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run("killed.recovered").string()});
    INFO(verify.out);
    CHECK(verify.status == 0);
    CHECK(contains(verify.out, "recovered"));
    CHECK(contains(run_program(PETLM_PROGRAM, {"info", site.run("killed.recovered").string()}).out,
                   "state recovered"));
    CHECK(
        contains(run_program(PETLM_PROGRAM, {"info", site.run("killed").string()}).out, "state interrupted"));
    CHECK(run_program(PETCTL_PROGRAM, {"ledger", "--file", site.run("killed.recovered").string()}).status ==
          0);
    Daemon daemon(site);
    json listed = daemon.call("runs")["runs"];
    CHECK(listed[0]["state"] == "interrupted");
    CHECK(listed[1]["state"] == "recovered");
    CHECK(daemon.terminate() == 0);
}
