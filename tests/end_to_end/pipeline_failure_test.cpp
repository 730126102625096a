// A pipeline that fails, as it does when a GPU is lost: the run and the daemon end, the files are readable,
// every document and the log name the cause, and no wrong data are written.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr const char* cause = "cudaErrorIllegalAddress";

// Blocks that are written early, and small slices.
json quick_blocks() {
    return {{"listmode", {{"block_bytes", 8192}, {"sync_interval_ms", 50}}},
            {"pipeline", {{"slice_frames", 4096}, {"threads", 1}}},
            {"watermark", {{"max_disorder_us", 20000}}}};
}

class Failure {
  public:
    explicit Failure(const std::string& when) { ::setenv("PETACQ_TEST_FAILURE", when.c_str(), 1); }
    ~Failure() { ::unsetenv("PETACQ_TEST_FAILURE"); }
    Failure(const Failure&) = delete;
    Failure& operator=(const Failure&) = delete;
};

// Subscribes to the status until the daemon ends.
class Watcher {
  public:
    explicit Watcher(const Site& site) : client_(site.socket()) {
        client_.call("subscribe", {{"interval_s", 3600}});
    }
    json last_status() {
        const auto notification = client_.next_notification(patience);
        return notification ? notification->at("params") : json();
    }

  private:
    petacq::daemon::ControlClient client_;
};

}  // namespace

TEST_CASE("a pipeline that fails during a run ends run and daemon", "[e2e][failure]") {
    const std::string when = GENERATE("submit 12", "collect 12");
    INFO(when);
    const Failure failure(when);
    const Site site(quick_blocks());
    Daemon daemon(site, "petacqd", PETACQD_FAILING_PROGRAM);
    REQUIRE(contains(daemon.status()["backend"].dump(), "failing"));
    Watcher watcher(site);
    daemon.start("broken");
    Process petsim(PETSIM_PROGRAM,
                   petsim_arguments(site, short_stream(daemon, {"--seed", "3", "--duration-s", "20"})),
                   site.directory() / "petsim");
    const json status = watcher.last_status();
    CHECK(daemon.process().wait() == 70);

    INFO(status.dump(1));
    REQUIRE(status.is_object());
    CHECK(status["state"] == "failed");
    CHECK(status["health"]["state"] == "failed");
    CHECK(contains(status["health"]["reasons"].dump(), cause));
    CHECK(contains(daemon.log(), "pipeline: CUDA: "));
    CHECK(contains(daemon.log(), cause));
    CHECK(contains(daemon.log(), "run broken failed: "));
    CHECK_FALSE(contains(daemon.log(), "used after it has failed"));

    const json run = site.run_json("broken");
    INFO(run["ledger"].dump(1));
    CHECK(run["state"] == "failed");
    CHECK(contains(run["stop_reason"], cause));
    CHECK(contains(run["stop_reason"], "while converting frames"));
    const json& ledger = run["ledger"];
    CHECK(ledger["closed"] == true);
    CHECK(ledger["pairs"]["written"] > 100);
    CHECK(ledger["pairs"]["in_queue"] == 0);
    CHECK(ledger["pairs"]["write_failed"] == 0);

    // The pairs of the eleven slices before the failure are there: complete, readable, in order.
    const auto file = site.run("broken") / "coincidences.plm";
    CHECK(run_program(PETLM_PROGRAM, {"verify", file.string()}).status == 0);
    const auto pairs = coincidences_of(file);
    CHECK(pairs.size() == ledger["pairs"]["written"].get<std::size_t>());
    CHECK(std::is_sorted(pairs.begin(), pairs.end(),
                         [](const auto& a, const auto& b) { return a.time < b.time; }));

    // Another daemon in the same place records another run.
    petsim.signal(SIGKILL);
    petsim.wait();
    Daemon next(site, "next");
    next.start("whole");
    const json summary = simulate(site, short_stream(next));
    REQUIRE(next.received(summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>()));
    CHECK(next.stop()["ledger_closed"] == true);
    CHECK(next.terminate() == 0);
}

TEST_CASE("a pipeline that fails between runs ends the daemon", "[e2e][failure]") {
    const Failure failure("collect 3");
    const Site site(quick_blocks());
    Daemon daemon(site, "petacqd", PETACQD_FAILING_PROGRAM);
    Watcher watcher(site);
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, {"--duration-s", "20"})),
                   site.directory() / "petsim");
    const json status = watcher.last_status();
    CHECK(daemon.process().wait() == 70);
    REQUIRE(status.is_object());
    CHECK(status["state"] == "failed");
    CHECK(status["health"]["state"] == "failed");
    CHECK(contains(status["health"]["reasons"].dump(), cause));
    CHECK(contains(daemon.log(), cause));
    for (const auto& entry : std::filesystem::directory_iterator(site.directory() / "data"))
        CHECK_FALSE(entry.is_directory());  // no run
    CHECK_FALSE(std::filesystem::exists(site.socket()));
}

TEST_CASE("a pipeline that fails as a run begins or ends, with no data at all, ends both", "[e2e][failure]") {
    const std::string when = GENERATE("begins", "ends");
    INFO(when);
    const Site site(quick_blocks());
    const std::filesystem::path broken = site.directory() / "broken";
    const Failure failure("histograms " + broken.string());
    Daemon daemon(site, "petacqd", PETACQD_FAILING_PROGRAM);
    if (when == "ends") daemon.start("r");
    std::ofstream(broken) << "now";
    if (when == "begins") {
        // The start is answered or refused, but not left waiting: the regular reading of the histograms may
        // fail first.
        try {
            daemon.start("r");
        } catch (const std::exception&) {
        }
    } else {
        daemon.process().signal(SIGTERM);
    }
    CHECK(daemon.process().wait() == 70);
    CHECK(contains(daemon.log(), cause));
    CHECK_FALSE(contains(daemon.log(), "used after it has failed"));
    CHECK_FALSE(contains(daemon.log(), "terminate called"));
    if (std::filesystem::exists(site.run("r"))) {
        const json run = site.run_json("r");
        CHECK(run["state"] == "failed");
        CHECK(contains(run["stop_reason"], cause));
        CHECK(run["ledger"]["closed"] == true);
    } else {
        CHECK(when == "begins");
    }
}
