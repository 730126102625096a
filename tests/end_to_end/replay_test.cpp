// Raw captures, and their replay: the same records of every kind as in the live run.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

Outcome replay(const Site& site, const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"--config", site.configuration()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(PETACQD_PROGRAM, all);
}

/// The last second ends where the run stopped. `same_stop`: the replay stops where the live run did.
void check_same(const Site& site, const std::string& live, const std::string& replayed,
                bool same_stop = true) {
    INFO(live << " and " << replayed);
    const json a = site.run_json(live);
    const json b = site.run_json(replayed);
    if (same_stop) CHECK(a["stop_ticks"] == b["stop_ticks"]);
    CHECK(payload_of(site.run(live) / "coincidences.plm") ==
          payload_of(site.run(replayed) / "coincidences.plm"));
    for (const char* file : {"singles.plm", "tags.plm", "seconds.plm"}) {
        INFO(file);
        REQUIRE(std::filesystem::exists(site.run(live) / file) ==
                std::filesystem::exists(site.run(replayed) / file));
        if (!std::filesystem::exists(site.run(live) / file)) continue;  // no tags
        if (!same_stop && file == std::string("seconds.plm")) continue;
        CHECK(payload_of(site.run(live) / file) == payload_of(site.run(replayed) / file));
    }
    CHECK(a["ledger"]["pairs"] == b["ledger"]["pairs"]);
    CHECK(a["start_ticks"] == b["start_ticks"]);
    CHECK(b["state"] == "complete");
    CHECK(b["ledger"]["closed"] == true);
    CHECK(b["ledger"]["frames"]["late"] == 0);
    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run(replayed).string()});
    INFO(verify.out);
    CHECK(verify.status == 0);
}

/// A capture of one board that makes a mistake in each datagram: `mistake`(first byte, length).
template <class Mistake>
void write_mistaken_capture(const Site& site, const std::filesystem::path& file, Mistake mistake) {
    simulate(site, {"--duration-s", "1", "--rate", "20000", "--sources", "1", "--write", file.string()});
    std::string bytes = read_file(file);
    constexpr std::size_t file_header = 24;
    constexpr std::size_t packet_header = 16;
    for (std::size_t at = file_header; at < bytes.size();) {
        std::uint32_t length = 0;
        std::memcpy(&length, bytes.data() + at + 8, sizeof length);
        const std::size_t datagram = bytes.find("PETF", at);
        at += packet_header + length;
        mistake(bytes.data() + datagram, at - datagram);
    }
    write_file(file, bytes);
}

const json with_raw = {{"listmode", {{"write_raw", true}, {"write_singles", true}}},
                       {"receive", {{"batch_count", 128}}}};  // the disk may take seconds

}  // namespace

TEST_CASE("the replay of a run's capture gives the run's list-mode", "[e2e][replay]") {
    Site site(with_raw);
    {
        Daemon daemon(site);
        daemon.start("live");
        const json summary = simulate(
            site,
            short_stream(daemon, {"--reorder", "0.2", "--duplicate", "0.1", "--corrupt", "magic:0.02",
                                  "--loss", "0.01", "--tag-dead-time", "15:0.01", "--start-time-s", "0.7"}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        const json stopped = daemon.stop();
        CHECK(stopped["ledger_closed"] == true);
        CHECK(stopped["capture"]["datagrams_written"] == stopped["ledger"]["datagrams"]["received"]);
        CHECK(stopped["capture"]["datagrams_dropped"] == 0);
        CHECK(daemon.terminate() == 0);
    }
    const json live = site.run_json("live");
    CHECK(live["ledger"]["datagrams"]["malformed"] > 0);
    CHECK(live["ledger"]["datagrams"]["lost"] > 0);
    CHECK(live["ledger"]["tags"]["written"] > 0);
    CHECK(live["capture"]["failure"].is_null());
    CHECK(live["capture"]["datagrams_dropped"] == 0);
    // It also contains the datagrams that were not accepted.
    CHECK(live["capture"]["datagrams_written"] == live["ledger"]["datagrams"]["received"]);
    CHECK(live["capture"]["bytes"] == std::filesystem::file_size(site.run("live") / "raw.pcap"));

    const std::string capture = (site.run("live") / "raw.pcap").string();
    const Outcome outcome = replay(site, {"--replay", capture, "--run", "again"});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    check_same(site, "live", "again");
    const json again = site.run_json("again");
    CHECK(again["replayed"] == json::array({capture}));
    CHECK(again["stop_ticks"] == live["stop_ticks"]);
    for (const char* key : {"received", "malformed", "duplicate", "lost"})
        CHECK(again["ledger"]["datagrams"][key] == live["ledger"]["datagrams"][key]);

    // For any slices and batches.
    int number = 0;
    for (const json& pipeline :
         {json{{"slice_frames", 777}, {"threads", 1}}, json{{"slice_frames", 1'000'000}, {"threads", 3}}}) {
        const std::string name = "way" + std::to_string(number++);
        site.configure({{"listmode", {{"write_singles", true}}},
                        {"pipeline", pipeline},
                        {"receive", {{"batch_bytes", 131072}}}});
        REQUIRE(replay(site, {"--replay", capture, "--run", name}).status == 0);
        check_same(site, "live", name);
    }
}

TEST_CASE("the replay of a run that outlasts its sources has the same seconds", "[e2e][replay]") {
    const Site site(with_raw);
    {
        Daemon daemon(site);
        daemon.start("live");
        const json summary = simulate(site, short_stream(daemon, {}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        // All sources have ended, and the daemon has decided what it received.
        REQUIRE(daemon.until([](const json& s) { return s["queues"]["pending_singles"] == 0; }));
        daemon.stop();
        CHECK(daemon.terminate() == 0);
    }
    REQUIRE(site.run_json("live")["ledger"]["pairs"]["prompts_found"] > 100);
    const Outcome outcome =
        replay(site, {"--replay", (site.run("live") / "raw.pcap").string(), "--run", "again"});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    check_same(site, "live", "again");
}

TEST_CASE("the capture of a run that starts and stops within a stream is complete", "[e2e][replay]") {
    const Site site(with_raw);
    two_runs_within_a_stream(site);
    for (const std::string name : {"one", "two"}) {
        const json live = site.run_json(name);
        CHECK(live["start_ticks"] > 0);
        const Outcome outcome =
            replay(site, {"--replay", (site.run(name) / "raw.pcap").string(), "--run", name + "-again"});
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        check_same(site, name, name + "-again");
        CHECK(site.run_json(name + "-again")["stop_ticks"] == live["stop_ticks"]);
    }
}

TEST_CASE("a simulated capture holds the datagrams that petsim sends, and can be replayed", "[e2e][replay]") {
    const Site site(json{{"listmode", {{"write_singles", true}}}});
    const std::vector<std::string> stream{"--duration-s", "0.5", "--rate", "200000",
                                          "--sources",    "4",   "--seed", "8"};
    const std::string file = (site.directory() / "simulated.pcap").string();
    std::vector<std::string> to_file = stream;
    to_file.insert(to_file.end(), {"--write", file});
    const json summary = simulate(site, to_file, "written");
    {
        Daemon daemon(site);
        daemon.start("live");
        std::vector<std::string> to_daemon = stream;
        to_daemon.insert(to_daemon.end(), {"--to", daemon.address()});
        simulate(site, to_daemon, "sent");
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        daemon.stop();
        CHECK(daemon.terminate() == 0);
    }
    {
        Daemon daemon(site);
        daemon.start("from-file");
        const Outcome sent =
            run_program(PETSIM_PROGRAM, {"--send", file, "--to", daemon.address(), "--speed", "2"});
        INFO(sent.err);
        REQUIRE(sent.status == 0);
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    CHECK(site.run_json("live")["ledger"]["pairs"]["prompts_found"] > 1000);
    // The sources had ended: a live run stops where everything had been decided then.
    check_same(site, "live", "from-file", false);
    const Outcome outcome = replay(site, {"--replay", file, "--run", "replayed"});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    check_same(site, "live", "replayed", false);
    // The same file name twice does not overwrite the first file.
    CHECK(run_program(PETSIM_PROGRAM, petsim_arguments(site, to_file)).status != 0);
}

TEST_CASE("a run says for how long its expected randoms are uncertain", "[e2e][replay]") {
    Site site;
    const std::string capture = (site.directory() / "simulated.pcap").string();
    simulate(site, {"--duration-s", "0.5", "--cylinder", "0,0,0,10,20,5", "--sources", "4", "--seed", "6",
                    "--write", capture});
    struct Rule {
        std::string name;
        const char* policy;
        int max_ring_difference;
        bool uncertain;
    };
    for (const Rule& rule :
         {Rule{"refused", "TakeWinnerOfGoods", 3, true}, Rule{"few", "TakeWinnerOfGoods", 20, false},
          Rule{"no_question", "RemoveMultiples", 3, false}}) {
        INFO(rule.name);
        site.configure(
            {{"coincidence",
              {{"multiples_policy", rule.policy}, {"max_ring_difference", rule.max_ring_difference}}}});
        REQUIRE(replay(site, {"--replay", capture, "--run", rule.name}).status == 0);
        const json randoms = site.run_json(rule.name)["expected_randoms"];
        INFO(randoms.dump());
        CHECK(randoms["pairs"] > 0);
        const double uncertain_s = randoms["uncertain_s"].get<double>();
        CHECK(uncertain_s == Approx(rule.uncertain ? randoms["data_s"].get<double>() : 0).margin(0.02));
        const Outcome info = run_program(PETLM_PROGRAM, {"info", site.run(rule.name).string()});
        REQUIRE(info.status == 0);
        INFO(info.out);
        CHECK((info.out.find("expected, uncertain in") != std::string::npos) == rule.uncertain);
    }
}

TEST_CASE("replay of an interval of a capture", "[e2e][replay]") {
    const Site site;
    const std::string file = (site.directory() / "simulated.pcap").string();
    simulate(site, {"--duration-s", "0.5", "--rate", "200000", "--seed", "9", "--write", file});
    REQUIRE(replay(site, {"--replay", file, "--run", "whole"}).status == 0);
    const std::uint64_t end = site.run_json("whole")["stop_ticks"];
    const std::uint64_t middle = end / 16 * 8;  // 8 ticks are 125 ps
    REQUIRE(replay(site, {"--replay", file, "--run", "first", "--to-ticks", std::to_string(middle)}).status ==
            0);
    // The same time in seconds.
    const std::uint64_t ps = middle / 8 * 125;
    constexpr std::uint64_t ps_in_s = 1'000'000'000'000;
    const std::string middle_s = fmt::format("{}.{:012}", ps / ps_in_s, ps % ps_in_s);
    REQUIRE(replay(site, {"--replay", file, "--run", "second", "--from-s", middle_s}).status == 0);
    const json first = site.run_json("first");
    const json second = site.run_json("second");
    CHECK(first["start_ticks"] == site.run_json("whole")["start_ticks"]);
    CHECK(first["stop_ticks"] == middle);
    CHECK(second["start_ticks"] == middle);
    CHECK(second["stop_ticks"] == end);
    for (const auto& c : coincidences_of(site.run("first") / "coincidences.plm"))
        REQUIRE(c.time < middle);
    for (const auto& c : coincidences_of(site.run("second") / "coincidences.plm"))
        REQUIRE(c.time >= middle);
    const auto pairs = [&](const std::string& name) {
        return site.run_json(name)["ledger"]["pairs"]["prompts_found"].get<std::uint64_t>();
    };
    // A group that straddles the cut may be counted differently.
    CHECK(pairs("first") + pairs("second") + 3 >= pairs("whole"));
    CHECK(pairs("first") > 100);
    CHECK(pairs("second") > 100);
}

TEST_CASE("captures that cannot be replayed are refused with the reason", "[e2e][replay]") {
    const Site site;
    const auto refused = [&](const std::vector<std::string>& arguments, int status, const std::string& part) {
        const Outcome outcome = replay(site, arguments);
        INFO(outcome.err);
        CHECK(outcome.status == status);
        CHECK(contains(outcome.err, part));
    };
    const std::string missing = (site.directory() / "missing.pcap").string();
    refused({"--replay", missing}, 78, missing);
    const std::string foreign = (site.directory() / "foreign.pcap").string();
    write_file(foreign, std::string(1000, 'x'));
    refused({"--replay", foreign}, 78, "not a pcap file");
    const std::string file = (site.directory() / "simulated.pcap").string();
    simulate(site, {"--duration-s", "0.1", "--rate", "100000", "--write", file});
    refused({"--replay", file, "--from-ticks", "10", "--to-ticks", "9"}, 78, "above --to-ticks");
    refused({"--from-ticks", "10"}, 64, "--replay");
    refused({"--from-s", "1"}, 64, "--replay");
    refused({"--replay", file, "--from-s", "1", "--from-ticks", "1"}, 64, "excludes");
    refused({"--replay", file, "--to-s", "1e300"}, 78, "--to-s: expected");
    // A truncated capture: its data are kept, and the exit status reports that some are missing.
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
    refused({"--replay", file, "--run", "cut"}, 74, "cut");
    CHECK(site.run_json("cut")["ledger"]["closed"] == true);
    CHECK(contains(site.run_json("cut")["stop_reason"], "cut"));
    REQUIRE(replay(site, {"--replay", file, "--run", "cut"}).status != 0);  // the run id exists
}

TEST_CASE("a replay starts when its first packet was taken", "[e2e][replay]") {
    const Site site;
    const std::string file = (site.directory() / "simulated.pcap").string();
    simulate(site,
             {"--duration-s", "0.2", "--rate", "100000", "--sources", "4", "--seed", "3", "--write", file});
    std::string bytes = read_file(file);
    const std::uint32_t seconds = 1'600'000'000;  // 2020-09-13T12:26:40Z
    std::uint32_t first = 0;
    std::memcpy(&first, bytes.data() + 24, 4);
    // Moves every packet to that time: 16 bytes of header, then its bytes.
    for (std::size_t at = 24; at < bytes.size();) {
        std::uint32_t time = 0;
        std::uint32_t length = 0;
        std::memcpy(&time, bytes.data() + at, 4);
        std::memcpy(&length, bytes.data() + at + 8, 4);
        time = time - first + seconds;
        std::memcpy(bytes.data() + at, &time, 4);
        at += 16 + length;
    }
    write_file(file, bytes);
    REQUIRE(replay(site, {"--replay", file, "--run", "old"}).status == 0);
    const json run = site.run_json("old");
    CHECK(run["state"] == "complete");
    CHECK(run["start_utc"].get<std::string>().starts_with("2020-09-13T12:26:40."));
    CHECK(run["stop_utc"].get<std::string>().starts_with("2020-09-13T12:26:4"));
    CHECK(run["stop_utc"] > run["start_utc"]);
}

TEST_CASE("the replay of a run without valid data says what is wrong with them", "[e2e][replay]") {
    const Site site;
    const std::filesystem::path live = site.directory() / "live";
    std::filesystem::create_directory(live);
    write_mistaken_capture(site, live / "raw.pcap", [](char* datagram, std::size_t) { datagram[3] = 'X'; });
    // As the daemon writes it: no board had a time.
    write_file(live / "run.json", R"({"state": "complete", "taken": {"start_ticks": 0, "stop_ticks": 0}})");
    const Outcome outcome = replay(site, {"--replay", (live / "raw.pcap").string(), "--run", "again"});
    INFO(outcome.err);
    CHECK(outcome.status == 65);
    CHECK(contains(outcome.err, "datagrams (100 %) malformed"));
    CHECK(site.run_json("again")["ledger"]["datagrams"]["malformed"] > 0);
}

TEST_CASE("a capture whose times are little-endian gives a bad run", "[e2e][replay]") {
    const Site site;
    const std::filesystem::path file = site.directory() / "swapped.pcap";
    write_mistaken_capture(site, file, [](char* datagram, std::size_t length) {
        for (std::size_t frame = 16; frame + 16 <= length; frame += 16)
            std::reverse(datagram + frame + 2, datagram + frame + 10);
    });
    const Outcome outcome = replay(site, {"--replay", file.string(), "--run", "swapped"});
    INFO(outcome.err);
    CHECK(outcome.status == 65);
    CHECK(contains(outcome.err, "far from the time of their source"));
    CHECK(site.run_json("swapped")["ledger"]["frames"]["accepted"] == 0);
}

TEST_CASE("a replay warns of a capture for other ports", "[e2e][replay]") {
    const json sockets = json::array({{{"address", "127.0.0.1"}, {"port", 9602}}});
    const Site site(json{{"receive", {{"sockets", sockets}}}});
    const std::string warning = "no packet of the capture is for a port of receive.sockets";
    for (const std::string port : {"9602", "9603"}) {
        INFO(port);
        const std::string file = (site.directory() / (port + ".pcap")).string();
        simulate(site,
                 {"--duration-s", "0.1", "--rate", "100000", "--write", file, "--to", "127.0.0.1:" + port});
        const Outcome outcome = replay(site, {"--replay", file, "--run", port});
        CHECK(outcome.status == (port == "9603" ? 65 : 0));
        CHECK(contains(outcome.err, warning) == (port == "9603"));
    }
}
