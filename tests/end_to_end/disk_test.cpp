// A full disk: the run stops cleanly, everything written is readable, and the daemon continues.
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a failing write stops the run, not the daemon", "[e2e][disk]") {
    const Site site(json{{"listmode", {{"block_bytes", 8192}, {"sync_interval_ms", 50}}},
                         {"watermark", {{"max_disorder_us", 20000}}}});
    Daemon daemon(site);
    daemon.process().limit_file_size(150'000);
    daemon.start("full");
    const json summary = simulate(site, short_stream(daemon, {"--seed", "3"}));
    REQUIRE(daemon.until([](const json& s) { return s["state"] == "idle"; }));

    const json status = daemon.status();
    INFO(status["ledger"].dump(1) << status["health"].dump());
    CHECK(status["run"].is_null());
    CHECK(status["health"]["state"] == "degraded");
    CHECK(contains(status["health"]["reasons"].dump(), "the last run, full, failed: "));
    CHECK(contains(status["health"]["reasons"].dump(), "File too large"));
    CHECK(contains(daemon.log(), "run full failed: "));
    CHECK(contains(daemon.log(), "File too large"));

    const json run = site.run_json("full");
    CHECK(run["state"] == "failed");
    CHECK(contains(run["stop_reason"], "coincidences.plm"));
    CHECK(contains(run["stop_reason"], "File too large"));
    const json& ledger = run["ledger"];
    CHECK(ledger["closed"] == true);
    CHECK(ledger["pairs"]["write_failed"] > 0);
    CHECK(ledger["pairs"]["written"] > 1000);
    CHECK(ledger["pairs"]["in_queue"] == 0);
    CHECK(status["ledger"] == ledger);

    // Everything that the ledger counts as written is in the file, and readable.
    const auto file = site.run("full") / "coincidences.plm";
    CHECK(std::filesystem::file_size(file) <= 150'000);
    const auto saved = payload_of(file);
    CHECK(saved.size() == ledger["pairs"]["written"].get<std::size_t>() * sizeof(petacq::gpu::Coincidence));
    CHECK(run_program(PETLM_PROGRAM, {"recover", file.string()}).status == 0);
    const auto recovered = site.run("full") / "coincidences.recovered.plm";
    CHECK(run_program(PETLM_PROGRAM, {"verify", recovered.string()}).status == 0);
    CHECK(payload_of(recovered) == saved);

    CHECK(contains(daemon.refusal("stop"), "no run is in progress"));

    // With space on the disk, the next run is complete.
    daemon.process().lift_file_size_limit();
    const auto before = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    REQUIRE(daemon.received(before));
    daemon.start("next");
    const json second = simulate(site, short_stream(daemon, {"--start-time-s", "10"}), "second");
    REQUIRE(daemon.received(before + second["total"]["expected"]["datagrams_received"].get<std::uint64_t>()));
    CHECK(daemon.stop()["failure"].is_null());
    CHECK(site.run_json("next")["state"] == "complete");
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run("next").string()}).status == 0);
    CHECK(daemon.until([](const json& now) { return now["health"]["state"] == "ok"; }));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("another daemon says how the last run failed", "[e2e][disk]") {
    const Site site(json{{"listmode", {{"block_bytes", 8192}, {"sync_interval_ms", 50}}}});
    {
        Daemon daemon(site, "first");
        daemon.process().limit_file_size(150'000);
        daemon.start("night-3");
        simulate(site, short_stream(daemon, {"--seed", "3"}));
        REQUIRE(daemon.until([](const json& s) { return s["state"] == "idle"; }));
        CHECK(contains(daemon.status()["recording"]["text"], "; the last run, night-3, failed at "));
        CHECK(daemon.terminate() == 74);
    }
    Daemon daemon(site, "next");
    json status;
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        return contains(s["recording"]["text"], "; the last run, night-3, failed at ");
    }));
    CHECK(contains(status["recording"]["text"], "File too large"));
    CHECK(contains(status["health"]["reasons"].dump(), "run_failed"));
    daemon.start("good");
    CHECK(daemon.stop()["failure"].is_null());
    CHECK(daemon.status()["health"]["state"] == "ok");
    CHECK(contains(daemon.status()["recording"]["text"],
                   "; the last run, good, ended with bad data (`petctl runs` says why) at "));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a start without space on the disk is refused, the next start with space is not", "[e2e][disk]") {
    const Site site;
    Daemon daemon(site);
    daemon.process().limit_file_size(2000);  // not even the header
    const std::string why = daemon.refusal("start", {{"run", "none"}});
    CHECK(contains(why, "File too large"));
    CHECK(daemon.status()["state"] == "idle");
    daemon.process().lift_file_size_limit();
    daemon.start("some");
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a disk with little space stops the raw capture, not the run", "[e2e][disk]") {
    // More than any disk has.
    const Site site(
        json{{"listmode", {{"write_raw", true}}}, {"health", {{"min_disk_free_bytes", 1ULL << 60U}}}});
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--seed", "3"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    // The status says so during the run.
    json status;
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        return !s["run"]["capture"]["failure"].is_null() &&
               contains(s["health"]["reasons"].dump(), "raw.pcap: stopped");
    }));
    CHECK(status["state"] == "running");
    CHECK(contains(status["run"]["capture"]["failure"], "raw.pcap"));
    CHECK(contains(status["run"]["capture"]["failure"], "health.min_disk_free_bytes"));
    const json end = daemon.stop();
    CHECK(contains(daemon.log(), "raw capture: "));
    CHECK(end["ledger_closed"] == true);
    CHECK(end["failure"].is_null());

    const json run = site.run_json("r");
    CHECK(run["state"] == "complete");
    CHECK(run["capture"]["failure"] == status["run"]["capture"]["failure"]);
    CHECK(run["capture"]["datagrams_written"] == 0);
    CHECK(run["capture"]["datagrams_dropped"] == run["ledger"]["datagrams"]["received"]);
    CHECK(run["capture"]["datagrams_dropped"] == run["capture"]["datagrams_offered"]);
    CHECK(run["ledger"]["pairs"]["written"] > 1000);
    CHECK(run["ledger"]["pairs"]["write_failed"] == 0);
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run("r").string()}).status == 0);
    CHECK(daemon.terminate() == 0);
}
