// SIGINT and SIGTERM stop the daemon cleanly.
#include <csignal>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a signal during a run finalises it", "[e2e][shutdown]") {
    const int number = GENERATE(SIGINT, SIGTERM);
    const std::string name = number == SIGINT ? "SIGINT" : "SIGTERM";
    INFO(name);
    const Site site;
    Daemon daemon(site);
    daemon.start("r");
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, {"--duration-s", "30"})),
                   site.directory() / "petsim");
    REQUIRE(daemon.until([](const json& s) { return s["ledger"]["singles"]["prompts"] > 100; }));
    daemon.process().signal(number);
    CHECK(daemon.process().wait() == 0);

    const json run = site.run_json("r");
    INFO(run["ledger"].dump(1));
    CHECK(run["state"] == "complete");
    CHECK(run["stop_reason"] == "daemon stopped by " + name);
    CHECK(run["ledger"]["closed"] == true);
    CHECK(run["ledger"]["pairs"]["written"] > 100);
    CHECK(run["ledger"]["datagrams"]["lost"] == 0);
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run("r").string()}).status == 0);
    CHECK_FALSE(std::filesystem::exists(site.socket()));
    CHECK(contains(daemon.log(), name + ": stopping"));
}

TEST_CASE("a signal stops an idle daemon", "[e2e][shutdown]") {
    const Site site;
    for (const int number : {SIGINT, SIGTERM}) {
        Daemon daemon(site);
        daemon.process().signal(number);
        CHECK(daemon.process().wait() == 0);
        CHECK_FALSE(std::filesystem::exists(site.socket()));
    }
}

TEST_CASE("a signal during the stop of a run lets the run finish", "[e2e][shutdown]") {
    // The stream stops abruptly: the end of the run waits for the source timeout.
    const Site site(json{{"watermark", {{"source_timeout_ms", 10'000}}}});
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--no-end-of-stream", "--duration-s", "0.1"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const std::string socket = site.socket().string();
    Process stop(PETCTL_PROGRAM, {"--socket", socket, "stop"}, site.directory() / "stop");
    REQUIRE(daemon.until([](const json& s) { return s["state"] == "stopping"; }));
    daemon.process().signal(SIGTERM);
    CHECK(daemon.process().wait() == 0);
    CHECK(stop.wait() == 0);
    CHECK(contains(stop.output(), "run r stopped: "));
    CHECK(site.run_json("r")["state"] == "complete");
    CHECK(site.run_json("r")["stop_reason"] == "stopped by operator");
}
