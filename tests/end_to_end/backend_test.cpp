// The choice of the back-end and its reason; both back-ends stay within their configured memory.
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("log, status and run.json name the back-end and the reason of the choice", "[e2e][backend]") {
    const std::string backend = GENERATE("auto", "cpu");
    INFO(backend);
    const Site site(json{{"pipeline", {{"backend", backend}}}});
    Daemon daemon(site);
    const json status = daemon.status();
    const std::string what = status["backend"];
    const std::string why = status["backend_choice"];
    if (backend == "cpu") {
        CHECK(why == "asked for");
        CHECK(what.rfind("cpu, ", 0) == 0);
    } else if (what.rfind("cuda, ", 0) == 0) {
        CHECK(why == "auto: a usable GPU was found");
    } else {
        CHECK(why.rfind("auto: CUDA cannot be used: ", 0) == 0);
        CHECK(why.size() > std::string("auto: CUDA cannot be used: ").size());
    }
    CHECK(contains(daemon.log(), "pipeline: " + what + " (" + why + ")"));
    daemon.start("r");
    daemon.stop();
    CHECK(site.run_json("r")["backend"] == what);
    CHECK(site.run_json("r")["backend_choice"] == why);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the daemon refuses to start when CUDA is requested and cannot be used", "[e2e][backend]") {
    json pipeline = {{"backend", "cuda"}};
    const bool here = no_cuda_reason().empty();
    if (here) {
        // More than any GPU has.
        pipeline["max_pending_singles"] = 1 << 30;
        pipeline["slice_frames"] = 1 << 24;
    }
    const Site site(json{{"pipeline", pipeline}});
    const Outcome outcome = run_program(PETACQD_PROGRAM, {"--config", site.configuration()});
    INFO(outcome.err);
    CHECK(outcome.status == 78);
    CHECK(contains(outcome.err, "/pipeline/backend: 'cuda' cannot be used: "));
    CHECK(contains(outcome.err, here ? "GPU memory" : "expected a usable GPU"));
}

TEST_CASE("GPUs that are not there are refused at the start and by --check", "[e2e][backend]") {
    const bool here = no_cuda_reason().empty();
    const Site site(json{{"pipeline", {{"backend", here ? "auto" : "cuda"}, {"devices", {0, 1023}}}}});
    for (const bool check : {false, true}) {
        std::vector<std::string> arguments{"--config", site.configuration()};
        if (check) arguments.emplace_back("--check");
        const Outcome outcome = run_program(PETACQD_PROGRAM, arguments);
        INFO((check ? "--check: " : "start: ") << outcome.err);
        CHECK(outcome.status == 78);
        CHECK(
            contains(outcome.err, here ? "/pipeline/devices: expected numbers of usable GPUs; CUDA: there is "
                                         "no device 1023"
                                       : "/pipeline/backend: 'cuda' cannot be used: "));
    }
}

TEST_CASE("the daemon computes on all GPUs that are listed", "[e2e][backend][cuda]") {
    if (const std::string reason = no_two_gpus_reason(); !reason.empty()) {
        WARN("skipped: " << reason);
        return;
    }
    const Site site(json{{"pipeline", {{"backend", "cuda"}, {"devices", {0, 1}}}}});
    Daemon daemon(site);
    const std::string backend = daemon.status()["backend"];
    INFO(backend);
    CHECK(backend.rfind("cuda, 0 ", 0) == 0);
    CHECK(contains(backend, " and 1 "));
    daemon.start("r");
    daemon.stop();
    CHECK(site.run_json("r")["backend"] == backend);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a host without a GPU computes on the CPU whatever devices are listed", "[e2e][backend]") {
    if (no_cuda_reason().empty()) {
        WARN("skipped: there is a GPU");
        return;
    }
    const Site site(json{{"pipeline", {{"backend", "auto"}, {"devices", {0, 1}}}}});
    const Outcome check = run_program(PETACQD_PROGRAM, {"--check", "--config", site.configuration()});
    CHECK(contains(check.out, "pipeline.devices: the CPU will compute: "));
    Daemon daemon(site);
    CHECK(daemon.status()["backend"].get<std::string>().rfind("cpu, ", 0) == 0);
    CHECK(daemon.terminate() == 0);
}

namespace {

// Everything waits for source 1, which falls silent for almost the source timeout.
void lives_within_its_memory(const char* backend) {
    const Site site(
        json{{"pipeline", {{"backend", backend}, {"slice_frames", 2000}, {"max_pending_singles", 4000}}},
             {"watermark", {{"source_timeout_ms", 60'000}, {"max_lag_ms", 60'000}}}});
    Daemon daemon(site);
    daemon.start("backlog");
    const json summary = simulate(site, short_stream(daemon, {"--silent", "1@0.02-0.45"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const json status = daemon.status();
    INFO(status.dump(1));
    CHECK(status["queues"]["given_up_slices"] > 0);
    // The bound, and what one slice may add before the watermark advances.
    const std::uint64_t slice = 2000 + 65507 / 16;
    CHECK(status["queues"]["pending_singles_high_water"].get<std::uint64_t>() <= 4000 + 3 * slice);
    CHECK(status["state"] == "running");
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("backlog")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["frames"]["received"] == summary["total"]["frames_sent"]);
    CHECK(ledger["pairs"]["written"] > 1000);
    CHECK(daemon.terminate() == 0);
}

}  // namespace

TEST_CASE("waiting for a source takes no more memory than configured", "[e2e][backend]") {
    lives_within_its_memory("cpu");
}

TEST_CASE("waiting for a source takes no more memory than configured on a GPU", "[e2e][backend][cuda]") {
    if (const std::string reason = no_cuda_reason(); !reason.empty()) {
        WARN("skipped: " << reason);
        return;
    }
    lives_within_its_memory("cuda");
}
