// An operator at the control socket of a real daemon, and what the log says of it.
#include <csignal>
#include <string>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++n;
    return n;
}

}  // namespace

TEST_CASE("finished runs and their ledgers are available, also after a restart of the daemon",
          "[e2e][control]") {
    const Site site;
    json first;
    {
        Daemon daemon(site);
        CHECK(daemon.call("runs")["runs"].empty());
        const json none = daemon.call("ledger");
        CHECK(none["run"].is_null());
        CHECK(none["ledger"]["closed"] == true);

        daemon.start("first");
        const json begun = daemon.call("ledger");
        CHECK(begun["run"] == "first");
        CHECK(begun["state"] == "running");
        CHECK(daemon.call("runs")["runs"][0]["state"] == "running");
        simulate(site, short_stream(daemon));
        first = daemon.stop();
        CHECK(first["prompts"] > 0);
        CHECK(daemon.call("ledger")["run"] == "first");
        CHECK(daemon.call("ledger") == daemon.call("ledger", {{"run", "first"}}));

        daemon.start("second");
        CHECK(daemon.call("ledger", {{"run", "second"}})["state"] == "running");
        CHECK(daemon.call("ledger", {{"run", "first"}})["state"] == "complete");
        CHECK(daemon.refusal("ledger", {{"run", "third"}}).starts_with("there is no run 'third' in "));
        daemon.process().signal(SIGKILL);
        daemon.process().wait();
    }
    Daemon again(site, "again");
    const json runs = again.call("runs")["runs"];
    REQUIRE(runs.size() == 2);
    CHECK(runs[0]["run"] == "first");
    CHECK(runs[0]["state"] == "complete");
    CHECK(runs[0]["prompts"] == first["prompts"]);
    CHECK(runs[0]["delayeds"] == first["delayeds"]);
    CHECK(runs[0]["ledger_closed"] == true);
    CHECK(runs[0]["reason"] == "stopped by operator");
    CHECK(runs[0]["seconds"].get<double>() == Approx(first["seconds"].get<double>()).margin(1));
    CHECK(runs[0]["bytes"] > std::filesystem::file_size(site.run("first") / "coincidences.plm"));
    CHECK(runs[1]["state"] == "interrupted");
    CHECK(again.call("ledger", {{"run", "first"}})["ledger"] == first["ledger"]);
    CHECK(again.call("ledger")["run"].is_null());
}

TEST_CASE("the log reports every change of state once", "[e2e][control]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("a");
    daemon.stop();
    daemon.call("start", {{"run", "b"}, {"duration_s", 0.1}});
    simulate(site, short_stream(daemon));
    REQUIRE(daemon.until([](const json& status) { return status["state"] == "idle"; }));
    for (int i = 0; i < 20; ++i)
        CHECK(daemon.refusal("start", {{"run", "a"}}).starts_with("run id 'a' already used"));
    CHECK(daemon.call("log_level", {{"level", "error"}})["previous"] == "info");
    daemon.start("quiet");
    daemon.stop();
    CHECK(daemon.call("log_level", {{"level", "info"}})["previous"] == "error");
    daemon.start("c");
    CHECK(daemon.terminate() == 0);
    const std::string log = daemon.log();
    INFO(log);
    for (const char* line :
         {"run a started in ", "run a stopping: stopped by operator", "run a complete (stopped by operator)",
          "run b started in ", "run b stopping: duration reached", "run b complete (duration reached)",
          "start refused: run id 'a' already used", "log level: error, was info",
          "log level: info, was error", "run c started in ", "SIGTERM: stopping", "run c stopping: SIGTERM",
          "run c complete (SIGTERM)", "petacqd stopped"}) {
        CAPTURE(line);
        CHECK(count(log, line) == 1);
    }
    CHECK(count(log, "run quiet") == 0);
}
