// petctl ledger, runs and log-level, against a server with a fake handler.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/run/ledger.hpp"
#include "daemon/system/logging.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/text.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

Ledger good_ledger() {
    Ledger ledger;
    ledger.datagrams.received = 1'000'010;
    ledger.datagrams.accepted = 1'000'000;
    ledger.datagrams.duplicate = 10;
    ledger.datagrams.lost = 7;
    ledger.datagrams.frames = ledger.frames.received = 2000;
    ledger.frames.accepted = ledger.singles.decided = 1500;
    ledger.frames.late = 500;
    ledger.singles.prompts = 700;
    ledger.singles.unpaired = 100;
    ledger.pairs = {700, 0, 700, 0, 0};
    return ledger;
}

json run_of(const std::string& id, const std::string& state) {
    return {{"run", id},
            {"state", state},
            {"start_utc", "2026-01-31T12:00:00.000Z"},
            {"stop_utc", nullptr},
            {"seconds", 754.2},
            {"prompts", 1234567},
            {"delayeds", 89},
            {"singles", nullptr},
            {"reason", "because"},
            {"bytes", 52428800},
            {"ledger_closed", state != "bad-ledger"}};
}

}  // namespace

TEST_CASE("petctl: the ledger with its identities", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    Ledger ledger = good_ledger();
    SECTION("that closes") {
        server.handler.set_ledger({{"run", "r1"}, {"state", "running"}, {"ledger", to_json(ledger)}});
        Petctl petctl({"--socket", socket, "ledger"});
        CHECK(petctl.wait() == 0);
        const std::string text = petctl.output();
        INFO(text);
        CHECK(text.starts_with("run r1 (running): ledger closed\n"));
        CHECK(contains(text,
                       "  datagrams                                           closes\n"
                       "      datagrams.received                   1,000,010\n"
                       "    + datagrams.in_flight_at_start                 0\n"
                       "    = datagrams.in_flight_at_end                   0\n"
                       "    + datagrams.accepted                   1,000,000\n"
                       "    + datagrams.duplicate                         10\n"));
        CHECK(contains(text, "    = 2 x singles.prompts                      1,400\n"));
        CHECK(contains(text, "  other counters\n"));
        CHECK(contains(text, "      datagrams.lost                               7\n"));
        CHECK_FALSE(contains(text, "NOT"));
    }
    SECTION("that does not") {
        ledger.frames.accepted -= 3;
        server.handler.set_ledger({{"run", "r1"}, {"state", "bad-ledger"}, {"ledger", to_json(ledger)}});
        Petctl petctl({"--socket", socket, "ledger", "--run", "old"});
        CHECK(petctl.wait() == 1);
        const std::string text = petctl.output();
        INFO(text);
        CHECK(text.starts_with("run old (bad-ledger): ledger NOT CLOSED\n"));
        CHECK(contains(text, "DOES NOT CLOSE: off by 3\n"));
        CHECK(contains(text, "DOES NOT CLOSE: off by -3\n"));
    }
    SECTION("of an unknown run, or of a file without a ledger") {
        Petctl missing({"--socket", socket, "ledger", "--run", "missing"});
        CHECK(missing.wait() == 1);
        CHECK(missing.errors() == "petctl: there is no run 'missing' in /data\n");
        for (const json& odd : {json(), json::array(), json{{"ledger", {{"frames", {1}}, {"closed", 5}}}}}) {
            server.handler.set_ledger(odd);
            Petctl tolerant({"--socket", socket, "ledger"});
            CHECK(tolerant.wait() == 0);
            CHECK(contains(tolerant.output(), "      frames.received                      -\n"));
        }
    }
}

TEST_CASE("petctl: the ledger of a file needs no daemon", "[control]") {
    const TemporaryDirectory directory;
    const std::string folder = directory.path().string();
    const json content = {{"run_id", "r9"}, {"state", "complete"}, {"ledger", to_json(good_ledger())}};
    std::ofstream(folder + "/run.json") << content;
    for (const std::string& path : {folder, folder + "/run.json"}) {
        Petctl petctl({"--socket", "/nowhere", "ledger", "--file", path, "--json"});
        CHECK(petctl.wait() == 0);
        CHECK(json::parse(petctl.output()) ==
              json{{"run", "r9"}, {"state", "complete"}, {"ledger", content["ledger"]}});
    }
    std::ofstream(folder + "/broken.json") << "{";
    Petctl broken({"ledger", "--file", folder + "/broken.json"});
    CHECK(broken.wait() == 74);
    CHECK(broken.errors().starts_with("petctl: " + folder + "/broken.json: not JSON: "));
    Petctl none({"ledger", "--file", folder + "/none.json"});
    CHECK(none.wait() == 74);
    CHECK(none.errors() ==
          "petctl: " + folder + "/none.json: cannot be opened for reading: No such file or directory\n");
}

TEST_CASE("petctl: runs that failed or have bad data stand out on a terminal", "[control]") {
    json runs =
        json::array({run_of("well", "complete"), run_of("broken", "failed"), run_of("wrong", "complete"),
                     run_of("odd", "complete"), run_of("cut", "interrupted")});
    const auto verdict = [](const char* state) {
        return json{{"state", state}, {"reasons", {{{"code", "c"}, {"message", "what is wrong"}}}}};
    };
    runs[2]["verdict"] = verdict("bad");
    runs[3]["verdict"] = verdict("doubtful");
    const petctl::Lines lines = petctl::runs_lines(runs);
    REQUIRE(lines.size() == 6);
    const auto style_of = [&](std::size_t line, const std::string& text) {
        for (const petctl::Span& span : lines[line])
            if (contains(span.text, text)) return span.style;
        FAIL("no " << text);
        return petctl::Style::plain;
    };
    for (const char* text : {"well", "because"})
        CHECK(style_of(1, text) == petctl::Style::plain);
    for (const char* text : {"broken", "failed: because"})
        CHECK(style_of(2, text) == petctl::Style::bad);
    for (const char* text : {"wrong", "bad: what is wrong"})
        CHECK(style_of(3, text) == petctl::Style::bad);
    for (const char* text : {"odd", "doubtful: what is wrong"})
        CHECK(style_of(4, text) == petctl::Style::warning);
    CHECK(style_of(5, "cut") == petctl::Style::warning);
}

TEST_CASE("petctl: the list of runs, however many", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    {
        Petctl petctl({"--socket", socket, "runs"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "no runs\n");
    }
    json few = json::array({run_of("r1", "complete"), run_of("run-two", "failed"), run_of("r3", "bad-ledger"),
                            run_of("r4", "interrupted"), run_of("r5", "running")});
    for (const char* key : {"seconds", "prompts", "delayeds", "reason", "ledger_closed"})
        few[3][key] = few[4][key] = nullptr;
    few[1]["prompts"] = few[1]["delayeds"] = nullptr;
    few[1]["singles"] = 45678;
    server.handler.set_runs(few);
    {
        Petctl petctl({"--socket", socket, "runs"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() ==
              "  run      started                      duration    prompts  delayeds  singles      size  "
              "ledger  "
              "    end\n"
              "  r1       2026-01-31T12:00:00.000Z  12 min 34 s  1,234,567        89        -  52.43 MB  "
              "closed  "
              "    because\n"
              "  run-two  2026-01-31T12:00:00.000Z  12 min 34 s          -         -   45,678  52.43 MB  "
              "closed  "
              "    failed: because\n"
              "  r3       2026-01-31T12:00:00.000Z  12 min 34 s  1,234,567        89        -  52.43 MB  NOT "
              "CLOSED  bad-ledger: because\n"
              "  r4       2026-01-31T12:00:00.000Z            -          -         -        -  52.43 MB  -   "
              "    "
              "    interrupted\n"
              "  r5       2026-01-31T12:00:00.000Z            -          -         -        -  52.43 MB  -   "
              "    "
              "    running\n");
    }
    // Triples have columns as soon as one run has some.
    few = json::array({run_of("r1", "complete"), run_of("r2", "complete")});
    few[1].update({{"triples", 3456}, {"delayed_triples", 78}});
    server.handler.set_runs(few);
    {
        Petctl petctl({"--socket", socket, "runs"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() ==
              "  run  started                      duration    prompts  delayeds  singles  triples  delayed "
              "triples      size  ledger  end\n"
              "  r1   2026-01-31T12:00:00.000Z  12 min 34 s  1,234,567        89        -        -           "
              "    "
              " -  52.43 MB  closed  because\n"
              "  r2   2026-01-31T12:00:00.000Z  12 min 34 s  1,234,567        89        -    3,456           "
              "    "
              "78  52.43 MB  closed  because\n");
    }
    json many = json::array();
    for (int i = 0; i < 345; ++i)
        many.push_back(run_of("run" + std::to_string(i), "complete"));
    server.handler.set_runs(many);
    {
        Petctl petctl({"--socket", socket, "runs", "--json"});
        CHECK(petctl.wait() == 0);
        CHECK(json::parse(petctl.output()) == json{{"data_dir", "/data"}, {"runs", many}});
    }
    for (const std::size_t last : {1U, 100U, 101U, 345U, 1000U}) {
        CAPTURE(last);
        Petctl petctl({"--socket", socket, "runs", "--json", "--last", std::to_string(last)});
        CHECK(petctl.wait() == 0);
        const json runs = json::parse(petctl.output())["runs"];
        REQUIRE(runs.size() == std::min<std::size_t>(last, 345));
        CHECK(runs.back()["run"] == "run344");
        CHECK(runs.front()["run"] == "run" + std::to_string(345 - runs.size()));
    }
}

TEST_CASE("petctl: the log level is shown and set", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    set_log_level(LogLevel::info);
    const auto said = [&](const std::vector<std::string>& arguments) {
        std::vector<std::string> all{"--socket", socket, "log-level"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        Petctl petctl(all);
        CHECK(petctl.wait() == 0);
        return petctl.output();
    };
    CHECK(said({}) == "info\n");
    CHECK(said({"debug"}) == "debug\n");
    CHECK(log_level() == LogLevel::debug);
    CHECK(said({}) == "debug\n");
    set_log_level(LogLevel::info);
}
