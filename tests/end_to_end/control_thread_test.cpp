// Pipes in place of files, signals and hostile files in the data directory neither hold up nor end the
// daemon.
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a reload from a pipe is refused, and nothing waits for it", "[e2e][control]") {
    const Site site;
    Daemon daemon(site);
    std::filesystem::remove(site.configuration());
    REQUIRE(::mkfifo(site.configuration().c_str(), 0600) == 0);
    daemon.process().signal(SIGHUP);
    CHECK(eventually([&] { return contains(daemon.log(), "petacqd.json: is not a regular file"); }));
    CHECK(daemon.status()["state"] == "idle");
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("user signals are ignored and logged", "[e2e][control]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("r1");
    daemon.process().signal(SIGUSR1);
    daemon.process().signal(SIGUSR2);
    CHECK(eventually([&] {
        return contains(daemon.log(), "SIGUSR1: ignored") && contains(daemon.log(), "SIGUSR2: ignored");
    }));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a run.json nested 100,000 deep is refused by every program that reads it", "[e2e][control]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("r1");
    daemon.stop();
    std::ofstream(site.run("r1") / "run.json")
        << R"({"state":)" << std::string(100'000, '[') << std::string(100'000, ']') << "}";

    const json run = daemon.call("runs")["runs"][0];
    CHECK(run["state"] == "unreadable");
    CHECK(contains(run["reason"], "nested deeper than"));
    CHECK(contains(daemon.refusal("ledger", {{"run", "r1"}}), "nested deeper than"));
    CHECK(daemon.status()["state"] == "idle");

    const std::string directory = site.run("r1").string();
    const auto output = [](const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        CHECK(outcome.status >= 0);  // no signal
        return outcome.out + outcome.err;
    };
    CHECK(contains(output(PETCTL_PROGRAM, {"ledger", "--file", directory}), "nested deeper than"));
    CHECK(contains(output(PETLM_PROGRAM, {"info", directory}), "nested deeper than"));
    CHECK(contains(output(PETLM_PROGRAM, {"verify", directory}), "nested deeper than"));
    CHECK(daemon.terminate() == 0);
}
