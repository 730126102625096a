// Runs that write singles and no coincidences, and runs whose interval is asked for: how several hosts
// receive one scanner.
#include <algorithm>
#include <csignal>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

const json only_singles = {{"listmode", {{"write_singles", true}, {"write_coincidences", false}}},
                           {"clock", "hall 3"}};

std::string good(const char* program, const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(program, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

/// The lower part of the spectrum serves as the gamma window.
const json with_gammas = {{"energy", {{"lower_keV", 430}, {"upper_keV", 650}}},
                          {"gammas",
                           {{"lower_keV", 200},
                            {"upper_keV", 400},
                            {"before_ticks", 50'000},
                            {"after_ticks", 100'000},
                            {"delay_ticks", 1'000'000}}}};

void check_ledger(const json& run, std::uint64_t singles, std::uint64_t gammas = 0) {
    const json& ledger = run["ledger"];
    INFO(ledger.dump(1));
    CHECK(run["state"] == "complete");
    CHECK(ledger["closed"] == true);
    CHECK(ledger["frames"]["accepted"] == singles);
    CHECK(ledger["singles"]["decided"] == singles - gammas);
    CHECK(ledger["singles"]["unsearched"] == singles - gammas);
    CHECK(ledger["gammas"]["unused"] == gammas);
    CHECK(ledger["gammas"]["used"] == 0);
    for (const char* counter : {"prompts", "delayeds", "unpaired", "groups", "in_dropped_multiples"})
        CHECK(ledger["singles"][counter] == 0);
    CHECK(ledger["saved_singles"]["written"] == singles);
    CHECK(ledger["pairs"]["written"] == 0);
}

std::vector<std::string> kinds_of(const json& run) {
    std::vector<std::string> kinds;
    for (const json& file : run["files"])
        kinds.push_back(file["kind"]);
    return kinds;
}

}  // namespace

TEST_CASE(
    "a run without coincidences has the singles of one with them, and resorts to its coincidences and "
    "triples",
    "[e2e][singles]") {
    json with_coincidences = with_gammas;
    with_coincidences["listmode"] = {{"write_singles", true}};
    Site site(with_coincidences);
    const std::string capture = (site.directory() / "simulated.pcap").string();
    simulate(site, {"--duration-s", "0.4", "--rate", "400000", "--sources", "4", "--seed", "5", "--tag-clock",
                    "3:0.01", "--write", capture});
    const auto replay = [&](const std::string& run) {
        good(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
    };
    replay("both");
    const std::string singles = payload_of(site.run("both") / "singles.plm");
    REQUIRE(singles.size() > 500'000);
    const auto records = singles_of(site.run("both") / "singles.plm");
    const auto gammas =
        std::ranges::count_if(records, [](const auto& single) { return single.energy <= 400; });
    const std::string coincidences = payload_of(site.run("both") / "coincidences.plm");
    const std::string triples = payload_of(site.run("both") / "triples.plm");
    REQUIRE(triples.size() > 50'000);
    for (const json& pipeline : {json{{"slice_frames", 3000}, {"threads", 1}}, json{{"threads", 3}}}) {
        const bool side_by_side = pipeline.size() == 1;
        json patch = only_singles;
        patch.update(with_gammas);
        patch["pipeline"] = pipeline;
        if (side_by_side) patch["listmode"]["files"] = 3;
        site.configure(patch);
        const std::string name = "singles" + std::to_string(pipeline.size());
        INFO(pipeline.dump());
        replay(name);
        const auto run = site.run(name);
        const json description = site.run_json(name);
        check_ledger(description, records.size(), static_cast<std::uint64_t>(gammas));
        if (!side_by_side)
            CHECK(kinds_of(description) == std::vector<std::string>{"singles", "tags", "seconds"});
        CHECK(description["expected_randoms"].is_null());
        CHECK(description["configuration"]["clock"] == "hall 3");
        CHECK(description["start_ticks"] == site.run_json("both")["start_ticks"]);
        CHECK(description["stop_ticks"] == site.run_json("both")["stop_ticks"]);
        CHECK_FALSE(std::filesystem::exists(run / "coincidences.plm"));
        CHECK(payload_of(run / "singles.plm") == singles);
        CHECK(payload_of(run / "tags.plm") == payload_of(site.run("both") / "tags.plm"));

        good(PETLM_PROGRAM, {"verify", run.string()});
        good(PETLM_PROGRAM, {"info", run.string()});
        good(PETCTL_PROGRAM, {"ledger", "--file", run.string()});
        const std::string resorted = (site.directory() / (name + ".plm")).string();
        good(PETLM_PROGRAM, {"resort", run.string(), "-o", resorted});
        CHECK(payload_of(resorted) == coincidences);
        const auto again = site.directory() / ("resorted-" + name);
        good(PETLM_PROGRAM, {"resort", run.string(), "-o", again.string()});
        CHECK(payload_of(again / "coincidences.plm") == coincidences);
        CHECK(payload_of(again / "triples.plm") == triples);
        CHECK(payload_of(again / "seconds.plm") == payload_of(site.run("both") / "seconds.plm"));
        CHECK(std::filesystem::exists(again / "coincidences.3.plm") == side_by_side);
        good(PETLM_PROGRAM, {"verify", again.string()});
    }
}

TEST_CASE("a live run without coincidences is healthy", "[e2e][singles]") {
    json patch = only_singles;
    patch["health"] = {{"min_disk_free_bytes", 0}};
    const Site site(patch);
    Daemon daemon(site);
    daemon.start("r");
    simulate(site, short_stream(daemon, {"--duration-s", "2.5", "--rate", "100000"}));
    REQUIRE(daemon.until([](const json& s) { return s["second"].is_object(); }));
    REQUIRE(daemon.until([](const json& s) { return s["latency"]["samples"] > 0; }));
    const json status = daemon.status();
    INFO(status.dump(1));
    for (const json& reason : status["health"]["reasons"]) {
        CHECK(reason["severity"] == "degraded");
        CHECK_FALSE(reason["code"].get<std::string>().starts_with("detector_"));
    }
    CHECK(status["rates"]["expected_randoms_per_s"].is_null());
    CHECK(status["average"]["necr_per_s"].is_null());
    CHECK(status["second"]["window_load"].is_null());
    CHECK(status["second"]["pile_up_factor"].is_null());
    CHECK(status["ledger"]["singles"]["unsearched"] > 0);
    good(PETCTL_PROGRAM, {"--socket", site.socket().string(), "status"});
    const std::string stopped = good(PETCTL_PROGRAM, {"--socket", site.socket().string(), "stop"});
    const json run = site.run_json("r");
    const auto singles = run["ledger"]["saved_singles"]["found"].get<std::uint64_t>();
    check_ledger(run, singles);
    CHECK(contains(stopped, " singles, ledger closed"));
    const json listed = daemon.call("runs")["runs"][0];
    CHECK(listed["prompts"].is_null());
    CHECK(listed["singles"] == singles);
    CHECK(contains(daemon.log(), std::to_string(singles) + " singles"));
    const std::string why = "without coincidences; petlm resort makes them from its singles";
    const Outcome dumped = run_program(PETLM_PROGRAM, {"dump", site.run("r").string()});
    CHECK(dumped.status != 0);
    CHECK(contains(dumped.err, why));
    good(PETLM_PROGRAM, {"dump", "--seconds", site.run("r").string()});
    CHECK(daemon.terminate() == 0);
    const std::string report = (site.directory() / "report").string();
    const Outcome plotted = run_program(PETLM_PROGRAM, {"plot", site.run("r").string(), "-o", report});
    CHECK(plotted.status != 0);
    if (!contains(plotted.err, "built without cairo")) CHECK(contains(plotted.err, why));
}

TEST_CASE("a configuration that writes neither singles nor coincidences is refused", "[e2e][singles]") {
    const Site site(json{{"listmode", {{"write_coincidences", false}}}});
    const Outcome outcome = run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--check"});
    CHECK(outcome.status == 78);
    CHECK(contains(outcome.err, "/listmode/write_coincidences: expected true"));
}

TEST_CASE("a run starts and stops at the detector times that are asked for", "[e2e][singles]") {
    constexpr std::uint64_t s = 64'000'000'000;  // ticks
    const Site site(only_singles);
    Daemon daemon(site);
    CHECK(daemon.refusal("start", {{"start_ticks", 5}, {"stop_ticks", 5}}) ==
          "stop_ticks: expected more than start_ticks = 5, found 5");
    CHECK(contains(daemon.refusal("start", {{"stop_ticks", 5}, {"duration_s", 1}}), "duration_s"));
    CHECK(contains(daemon.refusal("start", {{"start_ticks", -1}}), "whole number of ticks"));
    const std::string socket = site.socket().string();

    // One that is stopped before it has begun leaves nothing.
    daemon.call("start", {{"run", "r"}, {"start_ticks", 7 * s}});
    json status = daemon.status();
    CHECK(status["run"]["waiting"] == true);
    CHECK(status["run"]["start_ticks"] == 7 * s);
    CHECK(status["health"]["state"] == "ok");
    CHECK(daemon.stop()["reason"] == "stopped by operator before its start_ticks");
    CHECK_FALSE(std::filesystem::exists(site.run("r")));

    const std::uint64_t from = 3 * s + s / 10;
    const std::uint64_t to = 3 * s + s / 2;
    good(PETCTL_PROGRAM, {"--socket", socket, "start", "--run", "r", "--from-ticks", std::to_string(from),
                          "--to-ticks", std::to_string(to)});
    Process petsim(PETSIM_PROGRAM,
                   petsim_arguments(site, short_stream(daemon, {"--duration-s", "30", "--rate", "100000",
                                                                "--start-time-s", "3"})),
                   site.directory() / "petsim");
    REQUIRE(daemon.until([](const json& now) { return now["state"] == "idle"; }));
    const json run = site.run_json("r");
    CHECK(run["state"] == "complete");
    CHECK(run["stop_reason"] == "end of the interval");
    CHECK(run["start_ticks"] == from);
    CHECK(run["stop_ticks"] == to);
    const auto singles = singles_of(site.run("r") / "singles.plm");
    REQUIRE(singles.size() > 1000);
    CHECK(singles.front().time >= from);
    CHECK(singles.front().time < from + s / 100);
    CHECK(singles.back().time < to);
    CHECK(singles.back().time > to - s / 100);

    // That time has passed.
    const Outcome late =
        run_program(PETCTL_PROGRAM, {"--socket", socket, "start", "--run", "late", "--from-ticks", "5"});
    CHECK(late.status == 1);
    CHECK(contains(late.err, "start_ticks 5 has passed: expected a time from "));
    CHECK_FALSE(std::filesystem::exists(site.run("late")));
    REQUIRE(daemon.until([](const json& now) { return now["state"] == "idle"; }));

    // A run in progress says where it started.
    daemon.start("open");
    REQUIRE(eventually([&] { return site.run_json("open").contains("start_ticks"); }));
    CHECK(site.run_json("open")["state"] == "running");
    const auto started = site.run_json("open")["start_ticks"].get<std::uint64_t>();
    CHECK(daemon.status()["run"]["start_ticks"] == started);

    // It may be asked to stop at a time that is not too far ahead.
    CHECK(contains(daemon.refusal("stop", {{"stop_ticks", started + 90 * s}}), "a minute from now"));
    const std::uint64_t end = started + 5 * s;
    const json stopped = daemon.call("stop", {{"stop_ticks", end}});
    CHECK(stopped["ledger_closed"] == true);
    CHECK(stopped["reason"] == "stopped by operator");
    CHECK(site.run_json("open")["stop_ticks"] == end);
    const auto last = singles_of(site.run("open") / "singles.plm").back().time;
    CHECK(last < end);
    CHECK(last > end - s / 100);
    CHECK(site.run_json("open")["start_ticks"] == started);
    CHECK(site.run_json("open")["state"] == "complete");

    // A time that has passed stops at once.
    daemon.start("short");
    CHECK(daemon.call("stop", {{"stop_ticks", 5}})["ledger_closed"] == true);
    CHECK(site.run_json("short")["stop_ticks"] > end);
    petsim.signal(SIGTERM);
    petsim.wait();
}
