// An operator at the control socket of a real daemon, and what the log says of it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <string>

#include "daemon/system/utc.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq::test;
using nlohmann::json;
using petacq::daemon::utc_time;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++n;
    return n;
}

const json with_everything = {{"listmode", {{"write_raw", true}, {"write_singles", true}}}};

std::string good(const char* program, const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(program, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

json operator_in(const std::filesystem::path& file) {
    return json::parse(good(PETLM_PROGRAM, {"info", "--json", file.string()}))["description"]["operator"];
}

/// 2^-t/T of F-18, from the start in `run` to the time of its assay.
double decayed(const json& run, double activity) {
    const auto start = utc_time(run["start_utc"].get<std::string>()).value();
    const auto assay = utc_time(run["operator"]["assay_utc"].get<std::string>()).value();
    return activity * std::exp2(-std::chrono::duration<double>(start - assay).count() / 6584.04);
}

}  // namespace

TEST_CASE("what an operator marks stays with the run, also after a crash", "[e2e][control]") {
    const Site site;
    const auto marked = [&](const std::filesystem::path& run) {
        std::vector<std::string> texts;
        const json info = json::parse(good(PETLM_PROGRAM, {"info", "--json", run.string()}));
        for (const json& mark : info["marks"])
            texts.push_back(mark["text"]);
        return texts;
    };
    const std::vector<std::string> both{"before the data", "FDG injected \u00B5"};
    {
        Daemon daemon(site);
        CHECK(daemon.refusal("mark", {{"text", "x"}}) == "no run is in progress: there is nothing to mark");
        daemon.start("kept");
        const json early = daemon.call("mark", {{"text", both[0]}});
        CHECK(early["run"] == "kept");
        CHECK(early["ticks"].is_null());
        simulate(site, short_stream(daemon));
        REQUIRE(daemon.until([](const json& status) { return !status["run"]["start_ticks"].is_null(); }));
        const Outcome outcome = petctl(site, {"mark", "FDG", "injected", "\u00B5"});
        CHECK(outcome.out.starts_with("run kept marked at 20"));
        const json late = daemon.status()["run"]["marks"];
        CHECK(late["count"] == 2);
        const json& last = late["latest"][1];
        CHECK(last["text"] == both[1]);
        // The detector time of the mark lies in the run.
        CHECK(last["ticks"].get<std::uint64_t>() >
              daemon.status()["run"]["start_ticks"].get<std::uint64_t>());
        CHECK(daemon.refusal("mark", {{"text", std::string(257, 'x')}}) ==
              "text: expected 1 to 256 bytes on one line, found 257 bytes");
        CHECK_THAT(petctl(site, {"status", "--full"}).out, contains("  FDG injected"));
        daemon.stop();
        CHECK(daemon.refusal("mark", {{"text", "x"}}).starts_with("no run is in progress"));
        CHECK(marked(site.run("kept")) == both);
        CHECK_THAT(good(PETLM_PROGRAM, {"info", site.run("kept").string()}), contains("mark         20"));

        daemon.start("killed");
        daemon.call("mark", {{"text", "the power fails"}});
        // The history knows a run soon after its start.
        REQUIRE(eventually([&] {
            for (const auto& entry : std::filesystem::directory_iterator(site.directory() / "data")) {
                const std::string name = entry.path().filename();
                if (name.starts_with(".petacqd-history-") && name.ends_with(".json") &&
                    read_file(entry.path()).find("run killed started") != std::string::npos)
                    return true;
            }
            return false;
        }));
        daemon.process().signal(SIGKILL);
        daemon.process().wait();
    }
    const std::filesystem::path recovered = site.directory() / "recovered";
    good(PETLM_PROGRAM, {"recover", site.run("killed").string(), "-o", recovered.string()});
    CHECK(marked(recovered) == std::vector<std::string>{"the power fails"});

    // What happened is known after that, too.
    Daemon again(site, "again");
    std::vector<std::string> kinds;
    const json history = json::parse(petctl(site, {"history", "--since", "1h", "--json"}).out);
    for (const json& event : history["events"]) {
        const std::string kind = event["kind"];
        if (kind.starts_with("daemon") || kind.starts_with("run")) kinds.push_back(kind);
        if (kind == "mark") kinds.push_back(event["text"]);
    }
    // The last mark may have been made too late for the file.
    std::erase(kinds, "the power fails");
    CHECK(kinds == std::vector<std::string>{"daemon_started", "run_started", both[0], both[1], "run_ended",
                                            "run_started", "daemon_gone", "daemon_started"});
    CHECK(history["runs"].size() == 2);
}

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
    const json stored = site.run_json("first");
    const std::chrono::duration<double> lasted =
        petacq::daemon::utc_time(stored["stop_utc"].get<std::string>()).value() -
        petacq::daemon::utc_time(stored["start_utc"].get<std::string>()).value();
    CHECK(runs[0]["seconds"].get<double>() == Approx(lasted.count()).margin(0.002));
    CHECK(first["seconds"].get<double>() <= lasted.count() + 0.002);  // texts have milliseconds
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
          "log level: info, was error", "run c started in ", "SIGTERM: stopping",
          "run c stopping: daemon stopped by SIGTERM", "run c complete (daemon stopped by SIGTERM)",
          "petacqd stopped"}) {
        CAPTURE(line);
        CHECK(count(log, line) == 1);
    }
    CHECK(count(log, "run quiet") == 0);
}

TEST_CASE("what the operator says goes with the run and with everything made of it", "[e2e][operator]") {
    const Site site(with_everything);
    const std::string now =
        petacq::daemon::utc_text(std::chrono::system_clock::now() - std::chrono::hours(2));
    json run;
    {
        Daemon daemon(site);
        good(PETCTL_PROGRAM, {"--socket", site.socket().string(), "start", "--run", "mouse", "--nuclide",
                              "F-18", "--activity-MBq", "37", "--assay", now, "--bed-mm", "-80.5",
                              "--subject", "mouse 7", "--key", "tracer=FDG"});
        json shown = daemon.status()["run"]["operator"];
        CHECK(shown["subject"] == "mouse 7");
        const double at_command = shown["activity_at_start_MBq"];
        simulate(site, short_stream(daemon));
        daemon.stop();
        run = site.run_json("mouse");
        // The run starts with its data, a little later.
        CHECK(run["operator"]["activity_at_start_MBq"].get<double>() == Approx(at_command).epsilon(1e-3));
        CHECK(run["operator"]["activity_at_start_MBq"].get<double>() < at_command);
        shown["activity_at_start_MBq"] = run["operator"]["activity_at_start_MBq"];
        CHECK(run["operator"] == shown);

        daemon.start("silent");
        CHECK(daemon.status()["run"]["operator"].is_null());
        daemon.stop();
        CHECK_FALSE(site.run_json("silent").contains("operator"));
        CHECK(daemon.terminate() == 0);
    }
    const json said = run["operator"];
    CHECK(said["nuclide"] == "F-18");
    CHECK(said["half_life_s"].get<double>() == Approx(6584.04));
    CHECK(said["branching_ratio"] == 0.9686);
    CHECK(said["activity_MBq"] == 37.0);
    CHECK(said["assay_utc"] == now);
    CHECK(said["activity_at_start_MBq"].get<double>() == Approx(decayed(run, 37)).epsilon(1e-6));
    CHECK(said["bed_mm"] == -80.5);
    CHECK(said["keys"] == json{{"tracer", "FDG"}});

    const auto pairs = site.run("mouse") / "coincidences.plm";
    CHECK(operator_in(pairs) == said);
    CHECK(operator_in(site.run("mouse") / "singles.plm") == said);
    const auto at = [&](const char* name) { return (site.directory() / name).string(); };
    const std::string middle = std::to_string(run["start_ticks"].get<std::uint64_t>() + 1000);
    good(PETLM_PROGRAM, {"cut", pairs.string(), "-o", at("cut.plm"), "--to-ticks", middle});
    CHECK(operator_in(at("cut.plm")) == said);
    good(PETLM_PROGRAM, {"cut", pairs.string(), "-o", at("rest.plm"), "--from-ticks", middle});
    good(PETLM_PROGRAM, {"merge", at("cut.plm"), at("rest.plm"), "-o", at("merged.plm")});
    CHECK(operator_in(at("merged.plm")) == said);
    good(PETLM_PROGRAM, {"merge", (site.run("silent") / "coincidences.plm").string(), pairs.string(), "-o",
                         at("of-two.plm")});
    CHECK(operator_in(at("of-two.plm")).is_null());
    good(PETLM_PROGRAM, {"resort", site.run("mouse").string(), "-o", at("resorted.plm")});
    CHECK(operator_in(at("resorted.plm")) == said);
    good(PETLM_PROGRAM, {"recover", site.run("mouse").string(), "-o", at("recovered")});
    CHECK(json::parse(read_file(site.directory() / "recovered" / "run.json"))["operator"] == said);

    good(PETLM_PROGRAM,
         {"export", "--format", "castor", site.run("mouse").string(), "--output", at("castor")});
    CHECK_THAT(
        read_file(site.directory() / "castor" / "README.txt"),
        contains("for the decay of F-18 since the start of the run and its 0.9686 positrons per decay"));
    good(PETLM_PROGRAM, {"export", "--format", "stir", site.run("mouse").string(), "--output", at("stir")});
    const std::string header = read_file(site.directory() / "stir" / "template.hs");
    for (const char* line :
         {"\nradionuclide name[1] := F-18\n", "\nradionuclide halflife (sec)[1] := 6584.04\n",
          "\nradionuclide branching factor[1] := 0.9686\n"})
        CHECK_THAT(header, contains(line));
    std::string date = run["start_utc"].get<std::string>().substr(0, 10);
    std::replace(date.begin(), date.end(), '-', ':');
    CHECK_THAT(header, contains("\nstudy date := " + date + "\n"));

    // The packets of the capture came within a second of the start.
    good(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay",
                           (site.run("mouse") / "raw.pcap").string(), "--run", "again"});
    const json again = site.run_json("again");
    const auto seconds_after = [&](const json& time) {
        return std::chrono::duration<double>(utc_time(time.get<std::string>()).value() -
                                             utc_time(run["start_utc"].get<std::string>()).value())
            .count();
    };
    CHECK(again["operator"]["subject"] == "mouse 7");
    CHECK(again["operator"]["activity_at_start_MBq"].get<double>() ==
          Approx(decayed(again, 37)).epsilon(1e-6));
    CHECK(seconds_after(again["start_utc"]) >= 0);
    CHECK(seconds_after(again["start_utc"]) < seconds_after(run["stop_utc"]));
    CHECK(again["stop_utc"] > again["start_utc"]);
    CHECK(seconds_after(again["stop_utc"]) < seconds_after(run["stop_utc"]) + 1);
}

TEST_CASE("a start with what cannot be is refused over every way to the daemon", "[e2e][operator]") {
    const Site site(json{{"http", {{"allow_control", true}, {"control_token_file", "token"}}}});
    write_file(site.directory() / "token", "a-token-for-the-test\n");
    std::filesystem::permissions(site.directory() / "token", std::filesystem::perms::owner_read);
    Daemon daemon(site);
    const Outcome petctl =
        run_program(PETCTL_PROGRAM, {"--socket", site.socket().string(), "start", "--activity-MBq", "5"});
    CHECK(petctl.status == 64);
    const std::string reason = "activity_MBq: needs the nuclide, because it decays until the run starts";
    CHECK(contains(petctl.err, "petctl: --activity-MBq needs --nuclide"));
    CHECK(daemon.refusal("start", {{"activity_MBq", 5}}) == reason);
    const auto post = [&](const char* body) {
        return http(daemon.http_port(), "POST", "/control/start",
                    {{"Content-Type", "application/json"}, {"Authorization", "Bearer a-token-for-the-test"}},
                    body);
    };
    const HttpAnswer answer = post(R"({"activity_MBq":5})");
    CHECK(answer.status == 400);
    CHECK_THAT(answer.body, contains(reason));
    CHECK(daemon.status()["state"] == "idle");
    CHECK(post(R"({"run":"r","nuclide":"Na-22","keys":{"phantom":"point"}})").status == 200);
    CHECK(daemon.status()["run"]["operator"]["keys"]["phantom"] == "point");
    CHECK(daemon.terminate() == 0);
}
