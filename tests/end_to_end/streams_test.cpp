// Other kinds of streams: bare framing, no end of stream, very few frames, a source that falls silent.
#include <csignal>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("bare framing: frames are counted, loss is unknown", "[e2e][streams]") {
    const Site site(json{{"receive", {{"framing", "bare"}}}, {"sources", {{"accept_any", true}}}});
    Daemon daemon(site);
    daemon.start("bare");
    const json summary = simulate(site, short_stream(daemon, {"--framing", "bare", "--loss", "0.1"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const json live = daemon.status();
    CHECK(live["ledger"]["datagrams"]["lost"].is_null());
    REQUIRE(live["sources"].size() == 1);  // one sender is one source
    CHECK(live["sources"][0]["lost"].is_null());
    CHECK(daemon.stop()["ledger_closed"] == true);

    const json ledger = site.run_json("bare")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["closed"] == true);
    CHECK(ledger["loss_known"] == false);
    CHECK(ledger["datagrams"]["lost"].is_null());
    CHECK(ledger["datagrams"]["accepted"] == summary["total"]["datagrams_sent"]);
    CHECK(ledger["frames"]["received"] == summary["total"]["frames_sent"]);
    CHECK(ledger["frames"]["late"] == 0);
    CHECK(ledger["frames"]["accepted"] == count_truth(site.directory() / "petsim.truth").accepted);
    const Outcome text =
        run_program(PETCTL_PROGRAM, {"--socket", site.socket().string(), "status", "--full"});
    CHECK(text.status == 0);
    CHECK(contains(text.out, "lost -"));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a stream without an end marker is decided after the source timeout", "[e2e][streams]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--no-end-of-stream"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("r")["ledger"];
    check_ledger(ledger, summary, count_truth(site.directory() / "petsim.truth"));
    CHECK(ledger["datagrams"]["end_of_stream"] == 0);
    CHECK_FALSE(contains(daemon.log(), "did not reach the end of the run"));
    const Outcome compare =
        run_program(PETSIM_PROGRAM, {"compare", "--truth", (site.directory() / "petsim.truth").string(),
                                     "--run", site.run("r").string()});
    INFO(compare.out);
    CHECK(compare.status == 0);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the last singles of a quiet detector reach the disk without a stop", "[e2e][streams]") {
    const Site site(json{{"sources", {{"accept_any", true}}},
                         {"energy", {{"filter", false}}},
                         {"listmode", {{"write_singles", true}, {"sync_interval_ms", 100}}}});
    Daemon daemon(site);
    daemon.start("quiet");
    const json summary =
        simulate(site, {"--point", "0,0,0,0", "--dark-hz", "0.3", "--sources", "3", "--duration-s", "1",
                        "--no-end-of-stream", "--to", daemon.address()});
    const auto frames = summary["total"]["frames"].get<std::uint64_t>();
    REQUIRE(frames > 10);
    REQUIRE(frames < 200);
    const std::filesystem::path file = site.run("quiet") / "singles.plm";
    const bool written = eventually([&] { return singles_of(file).size() == frames; });
    INFO(daemon.status().dump(1));
    CHECK(written);
    const Outcome dump = run_program(PETLM_PROGRAM, {"dump", file.string()});
    CHECK(static_cast<std::uint64_t>(std::count(dump.out.begin(), dump.out.end(), '\n')) == frames + 1);
    CHECK(daemon.status()["state"] == "running");
    CHECK(daemon.stop()["ledger_closed"] == true);
    check_ledger(site.run_json("quiet")["ledger"], summary, [&] {
        TruthCounts truth = count_truth(site.directory() / "petsim.truth");
        truth.accepted += std::exchange(truth.below_window, 0) + std::exchange(truth.above_window, 0);
        return truth;
    }());
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a source that falls silent does not hold up the others for long", "[e2e][streams]") {
    // Only the timeout lets the others go on.
    const Site site(json{{"watermark", {{"max_lag_ms", 60'000}}}});
    Daemon daemon(site);
    daemon.start("r");
    Process petsim(
        PETSIM_PROGRAM,
        petsim_arguments(site, short_stream(daemon, {"--duration-s", "60", "--silent", "1@0.2-100"})),
        site.directory() / "petsim");
    // Health is evaluated once a second.
    json status;
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        return s["watermark_s"] > 1.0 && contains(s["health"]["reasons"].dump(), "source 1 has been silent");
    }));
    CHECK(petsim.running());
    INFO(status["sources"].dump(1) << status["health"].dump());
    for (const json& source : status["sources"]) {
        CHECK(source["state"] == (source["id"] == 1 ? "silent" : "active"));
        if (source["id"] == 1) CHECK(source["progress_s"] < 0.25);
    }
    CHECK(status["health"]["state"] == "degraded");
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(site.run_json("r")["ledger"]["frames"]["late"] == 0);
    petsim.signal(SIGTERM);
    CHECK(petsim.wait() == 0);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the daemon waits for the expected sources", "[e2e][streams]") {
    // Source 3 starts much later than the others; without the list its first frames would be late.
    const Site site(json{{"watermark", {{"max_disorder_us", 1000}}}});
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--skew-us", "500"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(site.run_json("r")["ledger"]["datagrams"]["unknown_source"] == 0);
    CHECK(site.run_json("r")["ledger"]["frames"]["late"] == 0);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("several sockets on one port share the stream", "[e2e][streams]") {
    // A first daemon finds a free port.
    Site site;
    const std::uint16_t port = [&] {
        Daemon chooser(site, "chooser");
        return chooser.ports().front();
    }();
    site.configure(
        {{"receive",
          {{"sockets", json::array({{{"address", "127.0.0.1"}, {"port", port}, {"count", 2}}})}}}});
    Daemon daemon(site);
    REQUIRE(daemon.ports() == std::vector<std::uint16_t>{port, port});
    daemon.start("r");
    // One sender per destination, so that the kernel can distribute them.
    const json summary = simulate(site, short_stream(daemon));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    check_ledger(site.run_json("r")["ledger"], summary, count_truth(site.directory() / "petsim.truth"));
    CHECK(daemon.terminate() == 0);
}
