// Runs of a fixed length in detector time.
#include <csignal>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr double ticks_per_s = 64e9;

json wait_for_end(const Site& site, Daemon& daemon, const std::string& run) {
    REQUIRE(daemon.until([](const json& s) { return s["state"] == "idle"; }));
    json document = site.run_json(run);
    INFO(document["ledger"].dump(1));
    CHECK(document["state"] == "complete");
    CHECK(document["stop_reason"] == "duration reached");
    CHECK(document["ledger"]["closed"] == true);
    CHECK(document["ledger"]["frames"]["late"] == 0);
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run(run).string()}).status == 0);
    return document;
}

void check_inside(const Site& site, const json& run) {
    const auto from = run["start_ticks"].get<std::uint64_t>();
    const auto to = run["stop_ticks"].get<std::uint64_t>();
    const auto pairs = coincidences_of(site.run(run["run_id"]) / "coincidences.plm");
    CHECK(pairs.size() > 500);
    for (const auto& pair : pairs) {
        if (pair.time < from || pair.time + pair.dt >= to) {
            INFO(pair.time << " + " << pair.dt << " in " << from << " to " << to);
            CHECK(false);
            break;
        }
    }
}

}  // namespace

TEST_CASE("a run of fixed length stops by itself, at the same time for any slices", "[e2e][duration]") {
    std::string coincidences;
    std::string singles;
    json interval;
    for (const json& pipeline : {json{{"slice_frames", 1}}, json{{"slice_frames", 5000}},
                                 json{{"slice_frames", 1'000'000}, {"slice_interval_ms", 300}}}) {
        INFO(pipeline.dump());
        const Site site(json{{"pipeline", pipeline}, {"listmode", {{"write_singles", true}}}});
        Daemon daemon(site);
        daemon.call("start", {{"run", "r"}, {"duration_s", 0.2}});
        simulate(site, short_stream(daemon, {"--seed", "9", "--start-time-s", "3", "--skew-us", "3000"}));
        const json run = wait_for_end(site, daemon, "r");
        check_inside(site, run);
        // It starts with the first frame.
        const auto all = singles_of(site.run("r") / "singles.plm");
        REQUIRE(!all.empty());
        CHECK(static_cast<double>(all.back().time - all.front().time) < 0.2 * ticks_per_s);
        CHECK(static_cast<double>(all.back().time - all.front().time) > 0.199 * ticks_per_s);
        if (singles.empty()) {
            coincidences = payload_of(site.run("r") / "coincidences.plm");
            singles = payload_of(site.run("r") / "singles.plm");
            interval = run["stop_ticks"];
        } else {
            CHECK(payload_of(site.run("r") / "coincidences.plm") == coincidences);
            CHECK(payload_of(site.run("r") / "singles.plm") == singles);
            CHECK(run["stop_ticks"] == interval);
        }
        CHECK(daemon.terminate() == 0);
    }
}

TEST_CASE("consecutive runs during one stream", "[e2e][duration]") {
    const Site site;
    Daemon daemon(site);
    daemon.call("start", {{"run", "one"}, {"duration_s", 0.3}});
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, {"--duration-s", "30"})),
                   site.directory() / "petsim");
    const json one = wait_for_end(site, daemon, "one");
    REQUIRE(petsim.running());
    daemon.call("start", {{"run", "two"}, {"duration_s", 0.3}});
    const json two = wait_for_end(site, daemon, "two");
    REQUIRE(petsim.running());
    daemon.start("three");
    REQUIRE(daemon.until([](const json& s) { return s["ledger"]["singles"]["prompts"] > 1000; }));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json three = site.run_json("three");
    CHECK(three["stop_reason"] == "stopped by operator");
    petsim.signal(SIGTERM);
    CHECK(petsim.wait() == 0);

    for (const json& run : {one, two, three}) {
        INFO(run["run_id"] << run["ledger"].dump(1));
        CHECK(run["ledger"]["datagrams"]["lost"] == 0);
        CHECK(run["ledger"]["closed"] == true);
        check_inside(site, run);
    }
    // Frames from after the end of a run had arrived when it stopped, and frames of a run before it started.
    CHECK(one["ledger"]["singles"]["pending_at_start"] == 0);
    CHECK(one["ledger"]["singles"]["pending_at_end"] > 0);
    CHECK(two["ledger"]["singles"]["pending_at_start"] > 0);
    CHECK(two["ledger"]["singles"]["pending_at_end"] > 0);
    CHECK(two["start_ticks"] >= one["stop_ticks"]);
    CHECK(three["start_ticks"] >= two["stop_ticks"]);
    CHECK(static_cast<double>(two["stop_ticks"].get<std::uint64_t>() -
                              two["start_ticks"].get<std::uint64_t>()) == Approx(0.3 * ticks_per_s));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a run of fixed length counts from its first frame, even after a long pause of the detector",
          "[e2e][duration]") {
    const Site site;
    Daemon daemon(site);
    const json before = simulate(site, short_stream(daemon, {"--duration-s", "0.1"}), "before");
    REQUIRE(daemon.received(before["total"]["expected"]["datagrams_received"]));
    // All singles are decided.
    REQUIRE(daemon.until([](const json& s) { return s["total"]["singles"]["pending_at_end"] == 0; }));
    daemon.call("start", {{"run", "r"}, {"duration_s", 0.2}});
    simulate(site, short_stream(daemon, {"--start-time-s", "50"}), "after");
    const json run = wait_for_end(site, daemon, "r");
    const auto pairs = coincidences_of(site.run("r") / "coincidences.plm");
    REQUIRE(pairs.size() > 1000);
    CHECK(static_cast<double>(pairs.front().time) > 50 * ticks_per_s);
    CHECK(static_cast<double>(pairs.back().time - pairs.front().time) > 0.19 * ticks_per_s);
    CHECK(daemon.terminate() == 0);
}
