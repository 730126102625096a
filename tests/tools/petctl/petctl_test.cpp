// petctl as a real process, against a server with a fake handler: commands, exit statuses, status.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "daemon/system/utc.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"
#include "tools/petctl/text/start_times.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// The answer to `stop` for a run without problems.
json stop_result() {
    return {{"run", "r1"},        {"reason", "stopped by operator"},
            {"seconds", 12.5},    {"prompts", 1234567},
            {"delayeds", 12},     {"ledger_closed", true},
            {"failure", nullptr}, {"ledger", {{"closed", true}, {"open", json::array()}}}};
}

}  // namespace

TEST_CASE("petctl start: what is forgotten about the source", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    for (const auto& [arguments, reason] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--activity-MBq", "5"}, "--activity-MBq needs --nuclide"},
             {{"--activity-MBq", "5", "--nuclide", "F-18"}, "--activity-MBq needs --assay"},
             {{"--assay", "now", "--nuclide", "F-18"}, "--assay needs --activity-MBq"},
             {{"--half-life-s", "5"}, "--half-life-s needs --nuclide"}}) {
        std::vector<std::string> all{"--socket", socket, "start"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        Petctl petctl(all);
        CHECK(petctl.wait() == 64);
        CHECK_THAT(petctl.errors(), contains("petctl: " + reason));
        CHECK(petctl.output().empty());
    }
    const auto started = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"--socket", socket, "start", "--run", "r", "--nuclide", "F-18"};
        all.insert(all.end(), more.begin(), more.end());
        Petctl petctl(all);
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "run r started\n");
        return petctl.errors();
    };
    CHECK_THAT(started({}), contains("petctl: the run has a nuclide and no activity"));
    // The daemon keeps milliseconds.
    const auto before = std::chrono::system_clock::now() - std::chrono::milliseconds(1);
    CHECK(started({"--activity-MBq", "37", "--assay", "now"}).empty());
    const auto assay = server.handler.last_start().operator_data.assay;
    REQUIRE(assay);
    CHECK(*assay >= before);
    CHECK(*assay <= std::chrono::system_clock::now());
    const auto at = [&](std::chrono::hours when) {
        return started({"--activity-MBq", "1", "--assay", utc_text(std::chrono::system_clock::now() + when)});
    };
    CHECK(at(std::chrono::hours(-2)).empty());
    CHECK_THAT(at(std::chrono::hours(2)), contains("is 2 h 00 min ahead"));
    CHECK_THAT(at(std::chrono::hours(-24)), contains("is 13 half-lives ago"));
}

TEST_CASE("petctl: each command that changes something answers in JSON, too", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    const auto answer = [&](std::vector<std::string> words, int status = 0) {
        words.insert(words.begin(), {"--socket", socket});
        words.emplace_back("--json");
        Petctl petctl(words);
        CHECK(petctl.wait() == status);
        return json::parse(petctl.output());
    };
    const json started = answer({"start", "--run", "r7", "--nuclide", "Y-86"});
    CHECK(started["run"] == "r7");
    CHECK_THAT(started["note"].get<std::string>(), contains("Y-86 emits prompt gammas"));
    CHECK_FALSE(answer({"start", "--run", "r8"}).contains("note"));
    {
        Petctl petctl({"--socket", socket, "stop", "--json"});
        const Reply reply = server.handler.take_stop();
        json result = stop_result();
        result["ledger_closed"] = false;
        reply.result(result);
        CHECK(petctl.wait() == 1);
        CHECK(json::parse(petctl.output()) == result);
        CHECK_THAT(petctl.errors(), contains("petctl: "));
    }
    CHECK(answer({"log-level"})["level"].is_string());
    CHECK(answer({"reload"}).is_object());
}

TEST_CASE("petctl: a start in seconds is refused in seconds", "[control]") {
    using petacq::petctl::refusal_in_seconds;
    CHECK(refusal_in_seconds("start_ticks 640 has passed: expected a time from 64000000000 ticks on",
                             15.625) == "--from-s 1e-08 s has passed: expected a time from 1 s on");
    CHECK(refusal_in_seconds("stop_ticks: expected more than start_ticks = 5, found 5", 1e12) ==
          "--to-s: expected more than --from-s = 5 s, found 5 s");
    CHECK(refusal_in_seconds("run id 'r5' is used already, 7", 20) == "run id 'r5' is used already, 7");
}

TEST_CASE("petctl: start and stop", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    {
        Petctl petctl({"--socket", socket, "start", "--run", "r1", "--duration", "2.5", "--note", "a note"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "run r1 started\n");
        CHECK(server.handler.last_start().run == "r1");
        CHECK(server.handler.last_start().duration_s == 2.5);
        CHECK(server.handler.last_start().note == "a note");
    }
    {
        Petctl petctl({"--socket", socket, "start", "--nuclide", "F-18", "--activity-MBq", "37.5", "--assay",
                       "2026-11-20T18:45:00+01:00", "--bed-mm", "-80", "--subject", "mouse 7", "--key",
                       "tracer=FDG", "--key", "formula=a=b"});
        CHECK(petctl.wait() == 0);
        const OperatorData& said = server.handler.last_start().operator_data;
        CHECK(said.nuclide.value().name == "F-18");
        CHECK(said.activity_MBq == 37.5);
        CHECK(said.assay == utc_time("2026-11-20T17:45:00Z"));
        CHECK(said.bed_mm == -80);
        CHECK(said.subject == "mouse 7");
        CHECK(said.keys == std::map<std::string, std::string>{{"tracer", "FDG"}, {"formula", "a=b"}});
    }
    {
        Petctl petctl({"--socket", socket, "start", "--nuclide", "Fe-52", "--half-life-s", "29790",
                       "--branching-ratio", "0.5549", "--nuclide-source", "ENSDF"});
        CHECK(petctl.wait() == 0);
        const OperatorData& said = server.handler.last_start().operator_data;
        CHECK(said.nuclide == petacq::config::Nuclide{"Fe-52", 29790, 0.5549});
        CHECK(said.nuclide_source == "ENSDF");
    }
    {
        Petctl petctl({"--socket", socket, "start", "--run", "r2", "--nuclide", "Y-86"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output().starts_with("run r2 started\nY-86 emits prompt gammas (mainly 1077 keV"));
        CHECK_THAT(petctl.output(), contains("The gammas are not recorded: the configuration of"));
    }
    {
        server.handler.set_status({{"common", {{"gammas_lower_keV", 900}}}});
        Petctl petctl({"--socket", socket, "start", "--run", "r2", "--nuclide", "Y-86"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output().ends_with("are among the prompts.\n"));
    }
    {
        Petctl petctl({"--socket", socket, "start", "--nuclide", "F-19"});
        CHECK(petctl.wait() == 1);
        // And no doubt about a start that was refused.
        CHECK(petctl.errors().starts_with("petctl: nuclide: expected one of C-11, "));
    }
    {
        Petctl petctl({"--socket", socket, "start", "--duration", "1e300"});
        CHECK(petctl.wait() == 1);
        CHECK(petctl.errors() ==
              "petctl: duration_s: expected a number of seconds above 0, at most 1e9, found 1e+300\n");
    }
    for (const auto& [argument, reason] :
         {std::pair("--key=a=1", "--key: a was given twice"),
          std::pair("--key=b", "expected name=value, found b"),
          std::pair("--bed-mm=inf", "expected a finite number, found inf"),
          std::pair("--activity-MBq=much", "expected a finite number of at least 0, found much")}) {
        Petctl petctl({"--socket", socket, "start", "--key", "a=1", argument});
        CHECK(petctl.wait() == 64);
        CHECK_THAT(petctl.errors(), contains(reason));
    }
    {
        Petctl petctl({"start", "--socket", socket, "--run", "used"});
        CHECK(petctl.wait() == 1);
        CHECK(petctl.output().empty());
        CHECK(petctl.errors() == "petctl: run id 'used' is used already\n");
    }
    {
        Petctl petctl({"stop"}, {"PETACQ_SOCKET=" + socket});
        const Reply reply = server.handler.take_stop();
        CHECK(petctl.output().empty());  // it waits
        reply.result(stop_result());
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger closed\n");
        CHECK(petctl.errors().empty());
        CHECK(server.handler.last_stop().run == std::nullopt);
    }
    {
        Petctl petctl({"--socket", socket, "stop"});
        const Reply reply = server.handler.take_stop();
        json result = stop_result();
        result.update({{"triples", 3456}, {"delayed_triples", 1}});
        reply.result(result);
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() ==
              "run r1 stopped: 1,234,567 prompts, 12 delayeds, 3,456 triples, 1 delayed triple, ledger "
              "closed\n");
    }
    {
        Petctl petctl({"--socket", socket, "stop", "--run", "r0"});
        server.handler.take_stop().error(rpc_refused, "the run in progress is r1, not r0");
        CHECK(petctl.wait() == 1);
        CHECK(server.handler.last_stop().run == "r0");
        CHECK(petctl.errors() == "petctl: the run in progress is r1, not r0\n");
    }
}

TEST_CASE("petctl: an interval in seconds", "[control]") {
    TestServer server;
    const auto start = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"--socket", server.socket().string(), "start"});
        auto petctl = std::make_unique<Petctl>(arguments);
        petctl->wait();
        return petctl;
    };
    CHECK(start({"--from-s", "1"})->errors() ==
          "petctl: --from-s, --to-s: the daemon does not tell its tick; expected times in ticks\n");
    server.handler.set_status({{"common", {{"tick_ps", 19.53125}}}});
    // Every digit counts: a double has no tick of 20 ps in a million seconds.
    CHECK(start({"--run", "r1", "--from-s", "1000000.00000000001", "--to-s", "1.5e6"})->output() ==
          "run r1 waits for its start at 1000000.00000000001 s\n");
    CHECK(server.handler.last_start().start_ticks == 51'200'000'000'000'001);
    CHECK(server.handler.last_start().stop_ticks == 76'800'000'000'000'000);
    CHECK(start({"--run", "r1", "--from-ticks", "800"})->output() ==
          "run r1 waits for its start at 800 ticks\n");
    server.handler.set_status({{"common", {{"tick_ps", 19.53125}}}, {"watermark_s", 12.3456}});
    CHECK(start({"--run", "used", "--from-s", "1"})->errors() ==
          "petctl: run id 'used' is used already; detector time is now 12.346 s\n");
    CHECK(start({"--to-s", "1e9"})->errors() ==
          "petctl: --to-s: expected a number of s of at least 0, with at most 18 digits and less than 2^63 "
          "ticks; found 1e9\n");
    for (const auto& [one, other] : {std::pair("--from-s=1", "--from-ticks=1"),
                                     {"--to-s=1", "--to-ticks=1"},
                                     {"--to-s=1", "--duration=1"},
                                     {"--to-ticks=1", "--duration=1"}})
        CHECK_THAT(start({one, other})->errors(), contains(" excludes "));
    CHECK_THAT(start({"--from-s=-1"})->errors(),
               contains("expected a finite number of at least 0, found -1"));
}

TEST_CASE("petctl: mark notes its words in the run in progress", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    const auto mark = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"--socket", socket, "mark"});
        auto petctl = std::make_unique<Petctl>(words);
        petctl->wait();
        return petctl;
    };
    CHECK(mark({"FDG", "injected"})->output() ==
          "run r1 marked at 2026-01-31T12:00:05.000Z, 1,000,000 ticks: FDG injected\n");
    const auto refused = mark({"refused"});
    CHECK(refused->wait() == 1);
    CHECK(refused->errors() == "petctl: no run is in progress\n");
    const auto too_long = mark({std::string(257, 'x')});
    CHECK(too_long->wait() == 1);
    CHECK(too_long->errors() == "petctl: text: expected 1 to 256 bytes on one line, found 257 bytes\n");
    CHECK(mark({"two\nlines"})->errors() ==
          "petctl: text: expected 1 to 256 bytes on one line, found control characters\n");
    CHECK(mark({})->wait() == 64);
}

TEST_CASE("petctl: stop reports an incomplete run", "[control]") {
    TestServer server;
    json result = stop_result();
    std::string line = "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger closed\n";
    std::string errors;
    SECTION("it failed") {
        result["failure"] = "coincidences.plm: No space left on device\x1b[31m";
        errors = "petctl: the run failed: coincidences.plm: No space left on device\\u001b[31m\n";
    }
    SECTION("its ledger does not close") {
        result["ledger_closed"] = false;
        result["ledger"] = {{"closed", false}, {"open", {"frames: received 9 is not accepted 8"}}};
        line = "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger NOT CLOSED\n";
        errors = "petctl: the ledger does not close; frames: received 9 is not accepted 8\n";
    }
    SECTION("both, with little detail") {
        result = {{"run", "r1"}, {"failure", ""}, {"ledger_closed", false}};
        line = "run r1 stopped: ledger NOT CLOSED\n";
        errors = "petctl: the run failed: -\npetctl: the ledger does not close\n";
    }
    SECTION("it failed, and so did its capture") {
        result["failure"] = "disk";
        result["capture"] = {{"datagrams_offered", 12'345}, {"datagrams_dropped", 2'345}};
        line.insert(line.size() - 1, ", raw capture lacks 2,345 of 12,345 datagrams");
        errors = "petctl: the run failed: disk\n";
    }
    Petctl petctl({"--socket", server.socket().string(), "stop"});
    server.handler.take_stop().result(result);
    CHECK(petctl.wait() == 1);
    CHECK(petctl.output() == line);
    CHECK(petctl.errors() == errors);
}

TEST_CASE("petctl: a daemon that is absent or goes away", "[control]") {
    const TemporaryDirectory directory;
    const std::string socket = (directory.path() / "c.sock").string();
    Petctl petctl({"--socket", socket, "status"});
    CHECK(petctl.wait() == 69);
    CHECK(petctl.errors() ==
          "petctl: cannot reach petacqd at " + socket +
              ": No such file or directory: is it running (systemctl status petacqd), and is "
              "this its socket?\n");

    TestServer server;
    Petctl stop({"--socket", server.socket().string(), "stop"});
    const Reply never = server.handler.take_stop();
    server.close();
    CHECK(stop.wait() == 69);
    CHECK(contains(stop.errors(), "it closed the connection"));
}

TEST_CASE("petctl: usage errors", "[control]") {
    const std::vector<std::vector<std::string>> wrong{{},
                                                      {"launch"},
                                                      {"start", "--duration", "0"},
                                                      {"start", "--duration", "nan"},
                                                      {"start", "--duration", "1h"},
                                                      {"doctor", "--seconds", "0"},
                                                      {"doctor", "--seconds", "1e300"},
                                                      {"status", "--xml"},
                                                      {"watch", "--json"},
                                                      {"ledger", "--run", "r", "--file", "f"},
                                                      {"runs", "--last", "0"},
                                                      {"runs", "--last", "-5"},
                                                      {"log-level", "loud"},
                                                      {"stop", "now"}};
    for (const auto& arguments : wrong) {
        Petctl petctl(arguments);
        CHECK(petctl.wait() == 64);
        CHECK_FALSE(petctl.errors().empty());
    }
    Petctl help({"--help"});
    CHECK(help.wait() == 0);
    CHECK(contains(help.output(), "status"));
}

TEST_CASE("petctl: the full status for people", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    Petctl petctl({"--socket", server.socket().string(), "status", "--full"}, {"LC_ALL=C"});
    CHECK(petctl.wait() == 0);
    const std::string text = petctl.output();
    INFO(text);
    const std::vector<std::string> lines{
        "* RECORDING  run mouse-7: 1 h 02 min of 2 h 00 min, 40 prompts, 1.84 GB, disk",
        "             full in 1 d 10 h",
        "petacqd 0.1.0",
        "  state             running",
        "  health            degraded",
        "    source_silent: source 3 is silent for 4.2 s: check its power and cable (for 2.5 s)",
        "    disk_slow: the disk does not keep up",
        "  uptime            1 h 02 min",
        "  back-end          cpu (asked for)",
        "  run               mouse-7",
        "    note            evil \\u001b[31m",
        "  latency           p50 12.3 ms, p99 40 ms, max 1.5 s",
        "  disk              1.235 TB of 4 TB free in /data, 10 MB/s written, 1 d 10 h left",
        "  dead time         3.4 % at 120 ns (non-paralysable)",
        "  scatter fraction  18.7 % (mouse phantom, May)",
        "  stages            receiver 0 25 %, writer 0 % STALLED",
        ("  queues            60 of 64 batches free (low 51), 1,000 singles pending (high 2,500), 1 block "
         "for the disk (high 2)"),
        "  raw capture       1,234,567 datagrams, 1.84 GB, 33 dropped, 3 batches for the disk (high 9)",
        "                    last second  average",
        "  bytes              83.75 MB/s        -",
        "  lost                0.00021 %        -",
        "  frames              5.235 M/s    5 M/s",
        "  prompts               312 k/s        -",
        "  randoms               0.288 %        -",
        "  NECR, estimate        250 k/s        -",
        "ledger: closed",
        "  datagrams   accepted 1,234,567  lost 12  received 1,234,567",
        "  frames      accepted 97  late 3  received 100",
        "  singles     decided 97  delayeds 4  prompts 80  unpaired 13",
        "  pairs       delayeds_found 0  prompts_found 40  written 40",
        ("  source         address   state  frames  datagrams    lost  loss  lost in all  skew us  seen s "
         "ago  reason"),
        ("  3       127.0.0.1:4000  silent   1 M/s      10 /s  1.5 /s  13 %        1,234     -1.2         "
         "4.2  silent for 4.2 s"),
        ("  11                   -  active       -          -       -     -            -        -           "
         "-  -"),
        ("  bdm  singles  mean keV  peak keV  photopeak  mean dt ns  prompts  temp C  dead time  randoms  "
         "health"),
        ("  0    1.5 k/s     498.2     511.0      505.5       -0.12     25 %    23.5        1 %    12 /s     "
         " ok")};
    for (const std::string& line : lines) {
        INFO(line);
        CHECK(contains("\n" + text, "\n" + line + "\n"));
    }
    CHECK_FALSE(contains(text, "saved_singles"));
    CHECK_FALSE(contains(text, "unheard_of"));
    CHECK_FALSE(contains(text, "\x1b"));

    json with_singles = full_status();
    with_singles["ledger"]["saved_singles"] = {{"found", 97}, {"written", 90}, {"in_queue", 7}};
    server.handler.set_status(with_singles);
    Petctl saving({"--socket", server.socket().string(), "status", "--full"});
    CHECK(saving.wait() == 0);
    CHECK(contains(saving.output(), "  saved_singles  found 97  in_queue 7  written 90\n"));

    json failed = full_status();
    failed["run"]["capture"]["failure"] = "raw.pcap: No space left on device";
    server.handler.set_status(failed);
    Petctl failing({"--socket", server.socket().string(), "status", "--full"});
    CHECK(failing.wait() == 0);
    CHECK(contains(failing.output(), "(high 9), FAILED: raw.pcap: No space left on device\n"));
    failed["run"]["capture"] = nullptr;
    server.handler.set_status(failed);
    Petctl without({"--socket", server.socket().string(), "status", "--full"});
    CHECK(without.wait() == 0);
    CHECK_FALSE(contains(without.output(), "raw capture"));

    for (const json& odd :
         {json(), json::array(), json{{"run", "r"}, {"sources", 5}, {"rates", nullptr}},
          json{{"state", 5}, {"ledger", {{"frames", {1, 2}}}}, {"modules", {1, nullptr}}}}) {
        server.handler.set_status(odd);
        Petctl tolerant({"--socket", server.socket().string(), "status", "--full"});
        CHECK(tolerant.wait() == 0);
        CHECK(contains(tolerant.output(), "  frames                      -        -\n"));
    }
}

TEST_CASE("petctl: an output that cannot be written is exit status 74", "[control]") {
    TestServer server;
    for (const char* command : {"status", "runs", "ledger", "log-level", "start"}) {
        CAPTURE(command);
        Petctl petctl({"--socket", server.socket().string(), command}, {}, "/dev/full");
        CHECK(petctl.wait() == 74);
        CHECK(petctl.errors() == "petctl: cannot write to standard output\n");
    }
}

TEST_CASE("petctl: status as JSON", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    Petctl petctl({"--socket", server.socket().string(), "status", "--json"});
    CHECK(petctl.wait() == 0);
    CHECK(json::parse(petctl.output()) == full_status());
}
