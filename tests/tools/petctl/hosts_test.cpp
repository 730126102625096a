// petctl --hosts with runs, history and acknowledge: each host is a server with a fake handler, and a script
// takes the place of ssh.
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/tools/petctl/petctl_process.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// Hosts named a, b and c.
struct Hosts {
    Hosts() {
        const std::string bin = std::filesystem::path(PETCTL_PROGRAM).parent_path().string();
        std::string script = "#!/bin/sh\ncase $1 in\n";
        for (std::size_t i = 0; i < servers.size(); ++i)
            script += std::string(1, static_cast<char>('a' + i)) + ") PETACQ_SOCKET='" +
                      servers.at(i).socket().string() + "';;\n";
        script += "*) echo \"no route to $1\" >&2; exit 255;;\nesac\nexport PETACQ_SOCKET\nPATH='" + bin +
                  "':$PATH\nexec sh -c \"$2\"\n";
        write_file(launch(), script);
        std::filesystem::permissions(launch(), std::filesystem::perms::owner_all);
    }

    struct Said {
        int status;
        std::string out;
        std::string err;
    };
    Said petctl(std::vector<std::string> arguments, const std::string& names = "a,b,c") {
        arguments.insert(arguments.begin(), {"--hosts", names});
        Petctl process(arguments, {"PETACQ_SSH=" + launch().string()});
        const int status = process.wait();
        return {status, process.output(), process.errors()};
    }

    std::array<TestServer, 3> servers;

  private:
    [[nodiscard]] std::filesystem::path launch() const { return directory_.path() / "launch"; }
    TemporaryDirectory directory_;
};

json run_of(const std::string& id, const std::string& state, int minute) {
    return {{"run", id},
            {"state", state},
            {"start_utc", "2026-01-31T12:" + std::to_string(minute) + ":00.000Z"},
            {"seconds", 60.0 + minute},
            {"prompts", nullptr},
            {"delayeds", nullptr},
            {"singles", 1000},
            {"reason", state == "complete" ? json("stopped by operator") : json()},
            {"bytes", 16000},
            {"ledger_closed", state == "complete" ? json(true) : json()}};
}

}  // namespace

TEST_CASE("petctl: the runs of several hosts", "[control][hosts]") {
    Hosts hosts;
    CHECK(hosts.petctl({"runs"}).out == "no runs\n");
    for (auto& server : hosts.servers)
        server.handler.set_runs({run_of("r1", "complete", 10), run_of("r2", "complete", 20)});
    hosts.servers[1].handler.set_runs({run_of("r1", "complete", 11), run_of("r2", "interrupted", 20)});
    hosts.servers[2].handler.set_runs({run_of("r1", "complete", 10)});
    const auto said = hosts.petctl({"runs"});
    INFO(said.out << said.err);
    CHECK(said.status == 0);
    CHECK(
        said.out ==
        "  run  started                     duration  prompts  delayeds  singles   size  ledger  end\n"
        "  r1   2026-01-31T12:10:00.000Z  1 min 11 s        -         -    3,000  48 kB  closed  stopped by "
        "operator\n"
        "  r2   2026-01-31T12:20:00.000Z  1 min 20 s        -         -    2,000  32 kB  -       "
        "interrupted: "
        "a: complete, stopped by operator; b: interrupted; not on c\n");
    const json document = json::parse(hosts.petctl({"runs", "--json", "--last", "1"}).out);
    CHECK(document["runs"].size() == 1);
    CHECK(document["runs"][0]["run"] == "r2");
    CHECK(document["runs"][0]["hosts"] == json{"a", "b"});
    CHECK(document["runs"][0]["not_on"] == json{"c"});
    CHECK(document["hosts"]["c"]["runs"][0]["run"] == "r1");

    const auto one_away = hosts.petctl({"runs"}, "a,nowhere");
    CHECK(one_away.status == 69);
    CHECK_THAT(one_away.out, contains("  r1 "));
    CHECK_THAT(one_away.out, contains("\n  nowhere: no route to nowhere\n"));
}

TEST_CASE("petctl: the runs of several hosts, more than fit into an answer", "[control][hosts]") {
    Hosts hosts;
    json many = json::array();
    for (int i = 0; i < 250; ++i) {
        many.push_back(run_of("r" + std::to_string(1000 + i), "complete", 10));
        many.back()["start_utc"] = "2026-01-31T12:00:00." + std::to_string(100 + i) + "Z";
    }
    hosts.servers[0].handler.set_runs(many);
    hosts.servers[1].handler.set_runs(json(many.begin() + 1, many.end()));
    const json all = json::parse(hosts.petctl({"runs", "--json"}, "a,b").out)["runs"];
    REQUIRE(all.size() == 250);
    CHECK(all[0]["not_on"] == json{"b"});
    CHECK(all[249]["run"] == "r1249");
    // What lies before the list of a host is not missing there.
    hosts.servers[1].handler.set_runs(json(many.begin(), many.end() - 1));
    const json few = json::parse(hosts.petctl({"runs", "--json", "--last", "3"}, "a,b").out)["runs"];
    REQUIRE(few.size() == 3);
    CHECK(few[0]["not_on"] == json::array());
    CHECK(few[2]["not_on"] == json{"b"});
}

TEST_CASE("petctl: the history of several hosts, in one order of time", "[control][hosts]") {
    Hosts hosts;
    const auto event = [](const std::string& utc, const std::string& text) {
        return json{{"utc", utc},  {"kind", "mark"}, {"code", nullptr},
                    {"run", "r1"}, {"text", text},   {"ticks", nullptr}};
    };
    const auto answer = [](const json& events) { return json{{"events", events}, {"runs", json::array()}}; };
    hosts.servers[0].handler.set_history(answer(json::array(
        {event("2026-11-20T22:00:00.250Z", "first"), event("2026-11-20T22:00:09.000Z", "\x1b[31mlast")})));
    hosts.servers[1].handler.set_history(answer(json::array({event("2026-11-20T22:00:05.000Z", "second")})));
    hosts.servers[2].handler.set_history(answer(json::array()));
    const auto said = hosts.petctl({"history", "--since", "2026-11-20T22:00:00Z"});
    INFO(said.out << said.err);
    CHECK(said.status == 0);
    CHECK(said.out.find("first") < said.out.find("second"));
    CHECK(said.out.find("second") < said.out.find("last"));
    CHECK_THAT(said.out, contains("  a  mark  first\n"));
    CHECK_THAT(said.out, contains("  b  mark  second\n"));
    CHECK_THAT(said.out, contains("  a  mark  \\u001b[31mlast\n"));

    const json document = json::parse(hosts.petctl({"history", "--json"}).out);
    REQUIRE(document["events"].size() == 3);
    CHECK(document["events"][1]["host"] == "b");
    CHECK(document["events"][2]["text"] == "\x1b[31mlast");
    CHECK(document["hosts"]["c"]["events"] == json::array());
    CHECK(document["hosts"]["a"]["events"].size() == 2);

    const auto away = hosts.petctl({"history"}, "a,nowhere");
    CHECK(away.status == 69);
    CHECK_THAT(away.out, contains("  first\n"));
    CHECK_THAT(away.out, contains("\n  nowhere: no route to nowhere\n"));
    const auto no_time = hosts.petctl({"history", "--since", "yesterday"});
    CHECK(no_time.status == 64);
    CHECK_THAT(no_time.err, contains("expected a time such as 2026-11-20T18:45:00Z"));
}

TEST_CASE("petctl: acknowledge on several hosts", "[control][hosts]") {
    Hosts hosts;
    const auto said = hosts.petctl({"acknowledge", "r1", "complete"});
    CHECK(said.status == 1);
    CHECK(said.out == "run r1 acknowledged as interrupted on a, b, c\n");
    CHECK_THAT(said.err, contains("petctl: b: run 'complete' was not interrupted"));
    CHECK(hosts.petctl({"acknowledge", "r1"}).status == 0);
    const auto one_away = hosts.petctl({"acknowledge", "r1"}, "a,nowhere");
    CHECK(one_away.status == 69);
    CHECK(one_away.out == "run r1 acknowledged as interrupted on a\n");
    CHECK(one_away.err == "petctl: nowhere: no route to nowhere\n");
}

TEST_CASE("petctl: a mark on several hosts", "[control][hosts]") {
    Hosts hosts;
    const auto said = hosts.petctl({"mark", "FDG", "injected"});
    INFO(said.out << said.err);
    CHECK(said.status == 0);
    CHECK(said.out.starts_with("a: run r1 marked at 20"));
    CHECK_THAT(said.out, contains("\nc: run r1 marked at 20"));
    CHECK_THAT(said.out, contains(": FDG injected\n"));
    const json document = json::parse(hosts.petctl({"mark", "--json", "two"}).out);
    CHECK(document["marked"]["b"]["text"] == "two");
    const auto pair = hosts.petctl({"mark", "one half"}, "a+nowhere");
    CHECK(pair.status == 0);
    CHECK(pair.err == "petctl: nowhere: no route to nowhere\n");
    const auto refused = hosts.petctl({"mark", "refused"});
    CHECK(refused.status == 1);
    CHECK(refused.out.empty());
}

TEST_CASE("petctl: a pair of hosts counts once, and may lack one of them", "[control][hosts]") {
    Hosts hosts;
    const auto ledger = [](std::uint64_t accepted, std::uint64_t singles) {
        return json{{"run", "r1"},
                    {"state", "complete"},
                    {"ledger",
                     {{"datagrams", {{"accepted", accepted}, {"lost", 100 - accepted}}},
                      {"saved_singles", {{"written", singles}}},
                      {"closed", true}}}};
    };
    hosts.servers[0].handler.set_ledger(ledger(90, 900));
    hosts.servers[1].handler.set_ledger(ledger(99, 990));
    hosts.servers[2].handler.set_ledger(ledger(100, 500));
    const auto said = hosts.petctl({"ledger", "--json"}, "a+b,c");
    CHECK(said.status == 0);
    const json sum = json::parse(said.out);
    CHECK(sum["sum"]["saved_singles"]["written"] == 990 + 500);
    CHECK(sum["sum"]["datagrams"]["lost"] == 1);
    CHECK(sum["closed"] == true);
    CHECK(json::parse(hosts.petctl({"ledger", "--json"}).out)["sum"]["saved_singles"]["written"] == 2390);

    for (auto& server : hosts.servers)
        server.handler.set_runs({run_of("r1", "complete", 10)});
    CHECK(json::parse(hosts.petctl({"runs", "--json"}, "a+b,c").out)["runs"][0]["singles"] == 2000);

    // A host of a pair that is away is named, and no failure of the pair.
    const auto away = hosts.petctl({"ledger", "--json"}, "a+nowhere,c");
    CHECK(away.status == 0);
    CHECK(json::parse(away.out)["hosts"]["nowhere"]["failure"] == "no route to nowhere");
    CHECK(hosts.petctl({"ledger"}, "a,nowhere").status == 69);
    CHECK(hosts.petctl({"ledger"}, "nowhere+neither,c").status == 69);
    CHECK(hosts.petctl({"ledger"}, "a+a").status == 64);
    CHECK(hosts.petctl({"ledger"}, "a+,c").status == 64);
    CHECK_THAT(hosts.petctl({"join"}, "a,b").out, contains("no host of a pair lacks the run"));
}

TEST_CASE("petctl: a host joins the run of its partner, with all that the operator said of it",
          "[control][hosts]") {
    Hosts hosts;
    json recording = {{"state", "running"},
                      {"version", "1.1.0"},
                      {"common", {{"tick_ps", 1e6}, {"clock", "hall 3"}}},
                      {"watermark_s", 2.0},
                      {"run",
                       {{"id", "mouse-7"},
                        {"waiting", false},
                        {"start_ticks", 1'000'000},
                        {"stop_ticks", nullptr},
                        {"duration_s", 60.0},
                        {"note", "breathes"},
                        {"operator", {{"subject", "mouse 7"}, {"keys", {{"cage", "9"}}}}}}}};
    json idle = {{"state", "idle"},
                 {"version", "1.0.0"},
                 {"uptime_s", 12.0},
                 {"common", {{"tick_ps", 1e6}, {"clock", "hall 3"}}},
                 {"run", nullptr}};
    hosts.servers[0].handler.set_status(idle);
    hosts.servers[1].handler.set_status(recording);
    const auto status = hosts.petctl({"status"}, "a+b");
    CHECK(status.status == 0);
    CHECK_THAT(status.out,
               contains("a: half_missing: it has no run, since petacqd started there 12.0 s ago at "
                        "the latest; b has run mouse-7: petctl join takes it up"));

    // An update changes the version. Its run mouse-7 is on its disk.
    hosts.servers[0].handler.set_runs(
        {run_of("mouse-7", "interrupted", 10), run_of("mouse-7-2", "complete", 11)});
    const auto said = hosts.petctl({"join"}, "a+b,c");
    INFO(said.out << said.err);
    CHECK(said.status == 0);
    const daemon::StartRequest start = hosts.servers[0].handler.last_start();
    CHECK(start.run == "mouse-7-3");
    CHECK(start.start_ticks > 2'000'000U);
    CHECK(start.stop_ticks == 61'000'000U);
    CHECK(start.note == "breathes");
    CHECK(start.operator_data.subject == "mouse 7");
    CHECK(start.operator_data.keys.at("cage") == "9");
    CHECK_FALSE(hosts.servers[2].handler.last_start().run);

    // Its partner has a run that it joined itself.
    recording["run"]["id"] = "mouse-7-4";
    hosts.servers[1].handler.set_status(recording);
    CHECK(hosts.petctl({"join"}, "a+b").status == 0);
    CHECK(hosts.servers[0].handler.last_start().run == "mouse-7-3");

    idle["common"]["clock"] = "hall 4";
    hosts.servers[0].handler.set_status(idle);
    const auto other = hosts.petctl({"join"}, "a+b");
    CHECK(other.status == 1);
    CHECK_THAT(other.err, contains("petctl: a: the hosts have different clocks: hall 3 (b) hall 4 (a)"));
}
