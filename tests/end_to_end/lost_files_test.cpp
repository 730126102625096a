// Another program removes, replaces or cuts a file of a run: the run is not complete, and says which file.
#include <functional>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

struct Loss {
    const char* name;
    const char* file;                                           ///< that the failure names
    std::function<void(const std::filesystem::path&)> happens;  ///< gets the directory of the run
};

/// The daemon may be making a file in it.
void remove_directory(const std::filesystem::path& run) {
    REQUIRE(eventually([&] {
        std::error_code error;
        std::filesystem::remove_all(run, error);
        return !std::filesystem::exists(run);
    }));
}

const std::vector<Loss>& losses() {
    static const std::vector<Loss> all = {
        {"directory", "/directory", remove_directory},
        {"moved", "/moved", [](const auto& run) { std::filesystem::rename(run, run.string() + ".moved"); }},
        {"part", "coincidences-0001.plm",
         [](const auto& run) { std::filesystem::remove(run / "coincidences-0001.plm"); }},
        {"cut", "coincidences-0001.plm",
         [](const auto& run) { std::filesystem::resize_file(run / "coincidences-0001.plm", 100); }},
        {"singles", "singles-0001.plm",
         [](const auto& run) { std::filesystem::remove(run / "singles-0001.plm"); }},
        {"seconds", "seconds.plm", [](const auto& run) { std::filesystem::remove(run / "seconds.plm"); }},
        {"raw", "raw.pcap", [](const auto& run) { std::filesystem::remove(run / "raw.pcap"); }},
        {"ledger", "ledger.csv",
         [](const auto& run) {
             std::filesystem::remove(run / "ledger.csv");
             write_file(run / "ledger.csv", "from_ticks,to_ticks\n");
         }},
        {"description", "run.json", [](const auto& run) { std::filesystem::remove(run / "run.json"); }}};
    return all;
}

}  // namespace

TEST_CASE("a run that loses a file is not complete", "[e2e][disk]") {
    const Site site(json{{"listmode",
                          {{"block_bytes", 4096},
                           {"sync_interval_ms", 20},
                           {"split_bytes", 100'000},
                           {"write_singles", true},
                           {"write_raw", true}}},
                         {"watermark", {{"max_disorder_us", 20000}}}});
    Daemon daemon(site);
    std::uint64_t received = 0;
    int start_s = 0;
    for (const Loss& loss : losses()) {
        CAPTURE(loss.name);
        daemon.start(loss.name);
        const json summary = simulate(site, short_stream(daemon, {"--duration-s", "0.1", "--start-time-s",
                                                                  std::to_string(start_s += 10)}));
        received += summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
        REQUIRE(daemon.received(received));
        loss.happens(site.run(loss.name));
        // The run may have stopped by itself.
        const bool running = daemon.status()["state"] == "running";
        if (running) daemon.refusal("stop");
        REQUIRE(daemon.until([](const json& s) { return s["state"] == "idle"; }));
        const json status = daemon.status();
        const std::string health = status["health"]["reasons"].dump();
        CHECK(contains(health, "run_failed"));
        INFO(health);
        CHECK(contains(health, loss.file));
        // The daemon may be opening the next file of a series when its directory goes.
        CHECK((contains(health, "another program has") || contains(health, "No such file or directory")));
        if (!std::filesystem::exists(site.run(loss.name))) continue;
        const json run = site.run_json(loss.name);
        CHECK(run["state"] == "failed");
        CHECK(contains(run["stop_reason"], loss.file));
    }
    daemon.start("good");
    CHECK(daemon.stop()["failure"].is_null());
    const auto reasons = [&] { return daemon.status()["health"]["reasons"].dump(); };
    CHECK_FALSE(contains(reasons(), "run_failed"));
    // The run.json of the directory that was moved is not final.
    CHECK(contains(reasons(), "run moved.moved was interrupted"));
    CHECK(daemon.refusal("acknowledge", {{"run", "moved.moved"}}).empty());
    CHECK_FALSE(contains(reasons(), "run_interrupted"));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a run whose list-mode is removed stops while it waits for data", "[e2e][disk]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("gone");
    remove_directory(site.run("gone"));
    REQUIRE(daemon.until([](const json& s) { return s["state"] == "idle"; }));
    CHECK(contains(daemon.status()["health"]["reasons"].dump(), "coincidences.plm"));
    CHECK(daemon.terminate() == 74);
}

TEST_CASE("a run whose histograms cannot be written has failed, and says so everywhere", "[e2e][disk]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--duration-s", "0.1"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    std::filesystem::create_directory(site.run("r") / "histograms.json");  // in the way
    const json end = daemon.stop();
    CHECK(contains(end["failure"], "histograms.json"));
    CHECK(site.run_json("r")["state"] == "failed");
    CHECK(contains(site.run_json("r")["stop_reason"], "histograms.json"));
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run("r").string()}).status == 1);
    CHECK(daemon.terminate() == 74);
}

TEST_CASE("a replay of a capture that is cut inside a packet is not complete", "[e2e][disk]") {
    const Site site(json{{"listmode", {{"write_raw", true}}}});
    {
        Daemon daemon(site);
        daemon.start("r");
        const json summary = simulate(site, short_stream(daemon, {"--duration-s", "0.1"}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        CHECK(daemon.stop()["failure"].is_null());
        CHECK(daemon.terminate() == 0);
    }
    const auto cut = site.directory() / "cut.pcap";
    std::filesystem::copy_file(site.run("r") / "raw.pcap", cut);
    std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 7);
    const Outcome replay = run_program(
        PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", cut.string(), "--run", "again"});
    INFO(replay.err);
    CHECK(replay.status == 74);
    CHECK(site.run_json("again")["state"] == "failed");
    CHECK(contains(site.run_json("again")["stop_reason"], "cut.pcap"));
    CHECK(site.run_json("again")["ledger"]["closed"] == true);
}
