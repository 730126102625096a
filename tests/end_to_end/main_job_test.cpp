// The main job with the programs as users run them: simulated scanner, daemon, list-mode, comparison with the
// truth.
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("the list-mode of a stream agrees with the truth", "[e2e]") {
    const Site site;
    Daemon daemon(site);
    const std::string socket = site.socket().string();

    const Outcome start =
        run_program(PETCTL_PROGRAM, {"--socket", socket, "start", "--run", "main", "--note", "first"});
    CHECK(start.status == 0);
    CHECK(start.out == "run main started\n");
    const json running = daemon.status();
    CHECK(running["state"] == "running");
    CHECK(running["run"]["id"] == "main");
    CHECK(running["run"]["note"] == "first");

    const json summary = simulate(site, short_stream(daemon));
    REQUIRE(summary["total"]["frames"].get<std::uint64_t>() > 50'000);
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const Outcome stop = run_program(PETCTL_PROGRAM, {"--socket", socket, "stop"});
    CHECK(stop.status == 0);
    CHECK(contains(stop.out, "run main stopped: "));
    CHECK(contains(stop.out, "ledger closed"));
    CHECK(daemon.status()["state"] == "idle");
    CHECK(daemon.until([](const json& s) { return s["health"]["state"] == "ok"; }));

    const json run = site.run_json("main");
    CHECK(run["state"] == "complete");
    CHECK(run["run_id"] == "main");
    CHECK(run["note"] == "first");
    CHECK(run["stop_reason"] == "stopped by operator");
    CHECK(run["calibration_sha256"].get<std::string>().size() == 64);
    CHECK(run["configuration"]["coincidence"]["window_ticks"] == 320);
    CHECK(run["configuration"]["energy"]["lower_keV"] == 350);  // a default
    CHECK(run["scanner"]["name"] == "small");
    CHECK(run["start_utc"].get<std::string>() < run["stop_utc"].get<std::string>());
    CHECK(run["stop_ticks"] > run["start_ticks"]);
    check_ledger(run["ledger"], summary, count_truth(site.directory() / "petsim.truth"));
    CHECK(run["ledger"]["datagrams"]["lost"] == 0);
    CHECK(run["ledger"]["datagrams"]["end_of_stream"] == 4);
    CHECK(run["ledger"]["pairs"]["prompts_found"] > 1000);
    CHECK(run["ledger"]["pairs"]["delayeds_found"] > 10);

    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run("main").string()});
    INFO(verify.out);
    CHECK(verify.status == 0);
    const Outcome compare =
        run_program(PETSIM_PROGRAM, {"compare", "--truth", (site.directory() / "petsim.truth").string(),
                                     "--run", site.run("main").string(), "--json"});
    INFO(compare.out);
    CHECK(compare.status == 0);
    const json agreement = json::parse(compare.out);
    CHECK(agreement["agrees"] == true);
    CHECK(agreement["prompts_expected"] == run["ledger"]["pairs"]["prompts_found"]);

    const Outcome dump =
        run_program(PETLM_PROGRAM, {"dump", (site.run("main") / "coincidences.plm").string()});
    CHECK(dump.status == 0);
    CHECK(static_cast<std::uint64_t>(std::count(dump.out.begin(), dump.out.end(), '\n')) ==
          run["ledger"]["pairs"]["written"].get<std::uint64_t>() + 1);

    CHECK(daemon.terminate() == 0);
    CHECK_FALSE(std::filesystem::exists(site.socket()));
    CHECK(contains(daemon.log(), "petacqd stopped"));
}

TEST_CASE("two runs of one daemon, each with its own stream", "[e2e]") {
    const Site site;
    Daemon daemon(site);
    std::uint64_t received = 0;
    // The detector's clock continues between the runs.
    for (const auto& [name, begin] : {std::pair("one", "0"), std::pair("two", "20")}) {
        daemon.start(name);
        const json summary =
            simulate(site, short_stream(daemon, {"--start-time-s", begin, "--seed", "4"}), name);
        received += summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
        REQUIRE(daemon.received(received));
        CHECK(daemon.stop()["ledger_closed"] == true);
        INFO(name);
        json ledger = site.run_json(name)["ledger"];
        // The second stream restarts its sequence numbers after the end of the first one.
        CHECK(ledger["datagrams"]["restarted"] == (std::string(name) == "two" ? 4 : 0));
        ledger["datagrams"]["restarted"] = 0;
        check_ledger(ledger, summary, count_truth(site.directory() / (std::string(name) + ".truth")));
        const Outcome compare =
            run_program(PETSIM_PROGRAM,
                        {"compare", "--truth", (site.directory() / (std::string(name) + ".truth")).string(),
                         "--run", site.run(name).string()});
        INFO(compare.out);
        CHECK(compare.status == 0);
    }
    CHECK(daemon.terminate() == 0);
}
