// The monitor: one reading, and views that agree with it.
#include "daemon/status/monitor.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "daemon/system/utc.hpp"
#include "tests/daemon/acquisition/scripted_pipeline.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A pipeline without data, with histograms of the right shape.
PipelineScript no_data(const config::Geometry& geometry) {
    PipelineScript script;
    script.histograms = *histograms(geometry, 0, 0, 0);
    return script;
}

/// An acquisition that is not started, and a monitor that reads it.
struct Stand {
    explicit Stand(const json& patch = json::object()) {
        setting.configuration = std::make_shared<const config::Configuration>(configuration_with(patch));
        setting.scanner = &scanner;
        setting.backend = "scripted";
        monitor.emplace(setting, pool, 1000, std::vector<const net::Receiver*>{}, acquisition, run);
    }

    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    RunState run;
    PipelineScript script = no_data(scanner.geometry);
    net::BatchPool pool{4, 65536, net::make_host_memory({})};
    net::BatchQueue filled{1, 4};
    Acquisition acquisition{{}, {}, std::make_unique<ScriptedPipeline>(script), pool, filled, {}, nullptr};
    std::optional<Monitor> monitor;
};

}  // namespace

TEST_CASE("views are made of the latest reading, not of the counters") {
    Stand stand;
    CHECK(stand.monitor->reading().free_batches == 4);
    net::Batch* const batch = stand.pool.take();
    CHECK(stand.monitor->reading().free_batches == 4);
    CHECK(stand.monitor->status(stand.run)["queues"]["free_batches"] == 4);
    stand.monitor->read(stand.run);
    CHECK(stand.monitor->reading().free_batches == 3);
    CHECK(stand.monitor->status(stand.run)["queues"]["free_batches"] == 3);
    CHECK(stand.monitor->status(stand.run)["queues"]["batches"] == 4);
    stand.pool.put(batch);
}

TEST_CASE("the status document shows what hosts of one scanner have in common") {
    const json common = Stand(json{{"clock", "hall 3"}}).monitor->status({})["common"];
    INFO(common.dump());
    CHECK(common["clock"] == "hall 3");
    CHECK(common["tick_ps"] == small_scanner().tick_ps);
    CHECK(common["scanner_sha256"].get<std::string>().size() == 64);
    CHECK(common["lower_keV"] < common["upper_keV"]);
    CHECK(common["gammas_lower_keV"].is_null());
    CHECK(common["gammas_upper_keV"].is_null());
    CHECK(common["writes_singles"] == false);
}

TEST_CASE("the status document shows the state of the runs") {
    Stand stand;
    json status = stand.monitor->status(stand.run);
    CHECK(status["state"] == "idle");
    CHECK(status["run"].is_null());
    CHECK(status["backend"] == "scripted");
    stand.run.daemon = DaemonState::stopping;
    stand.run.current = {"mouse-7", "a note", utc_time("2026-01-31T12:00:00.000Z").value(), 600, {}, {}, {}};
    status = stand.monitor->status(stand.run);
    CHECK(status["state"] == "stopping");
    CHECK(status["run"] == json{{"id", "mouse-7"},
                                {"note", "a note"},
                                {"operator", nullptr},
                                {"start_utc", "2026-01-31T12:00:00.000Z"},
                                {"duration_s", 600},
                                {"start_ticks", nullptr},
                                {"stop_ticks", nullptr},
                                {"marks", {{"count", 0}, {"latest", json::array()}}},
                                {"waiting", false},
                                {"waiting_for_data", false},
                                {"capture", nullptr}});
    stand.run.current.reset();
    stand.run.last_ledger = Ledger{};
    stand.run.last_ledger->datagrams.received = 5;
    status = stand.monitor->status(stand.run);
    CHECK(status["ledger"]["datagrams"]["received"] == 5);
    CHECK(status["total"]["datagrams"]["received"] == 0);
    stand.run.current = {"mouse-8", "", utc_time("2026-01-31T12:10:00.000Z").value(), {}, {}, {}, {}};
    status = stand.monitor->status(stand.run);
    CHECK(status["run"]["id"] == "mouse-8");
    // It has not started: what the last run counted is not its own.
    CHECK(status["ledger"]["datagrams"]["received"] == 0);
}

TEST_CASE("health and stages follow from what the monitor observes") {
    Stand stand(json{{"data_dir", "/nowhere/at/all"}});
    CHECK(stand.monitor->reading().stages.size() == 4);
    CHECK(stand.monitor->reading().stages.back().name == "writer");
    CHECK(stand.monitor->status(stand.run)["health"]["state"] == "ok");  // not assessed yet
    stand.run.ended = {"r1", {}, "No space left on device", true};
    stand.monitor->observe(stand.run);
    const json health = stand.monitor->status(stand.run)["health"];
    CHECK(health["state"] == "degraded");
    REQUIRE(health["reasons"].size() == 2);
    CHECK(health["reasons"][0]["code"] == "disk_unknown");
    CHECK(health["reasons"][1]["code"] == "run_failed");
    CHECK(health["reasons"][1]["follows_from"] == "disk_unknown");
    CHECK(stand.monitor->status(stand.run)["disk"]["free_bytes"].is_null());
}

TEST_CASE("a run that takes long to start is a problem that names what it waits for") {
    Stand stand;
    stand.run.daemon = DaemonState::starting;
    stand.run.start_asked = std::chrono::steady_clock::now() - std::chrono::seconds(10);
    const auto reason = [&] {
        stand.monitor->observe(stand.run);
        const json status = stand.monitor->status(stand.run);
        for (const json& found : status["health"]["reasons"]) {
            if (found["code"] == "start_delayed") return found["message"].get<std::string>();
        }
        return std::string();
    };
    CHECK(reason() == "a run was asked for 10 s ago and has not started: the disk does not respond");
    stand.run.daemon = DaemonState::running;
    CHECK(reason().ends_with("check the clocks of the boards"));
}

TEST_CASE("the counters of the receivers go on while the acquisition waits") {
    Stand stand;  // its acquisition is not started
    net::ReceiverOptions options;
    options.address = "127.0.0.1";
    options.port = 0;
    net::Receiver receiver(options, stand.pool, stand.filled.lane(0));
    Monitor monitor(stand.setting, stand.pool, 1000, {&receiver}, stand.acquisition, stand.run);
    receiver.start();
    const int sender = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(receiver.port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 5; ++i)
        CHECK(::sendto(sender, "bad", 3, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 3);
    ::close(sender);
    CHECK(eventually([&] {
        monitor.read(stand.run);
        return monitor.status(stand.run)["total"]["datagrams"]["received"] == 5;
    }));
    const json datagrams = monitor.status(stand.run)["total"]["datagrams"];
    CHECK(datagrams["malformed"] == 5);
    CHECK(datagrams["in_flight_at_end"] == 0);
    receiver.stop();
}

TEST_CASE("recording: the monitor knows when the latest frame arrived") {
    Stand stand;
    const json strip = stand.monitor->status(stand.run)["recording"];
    CHECK(strip["state"] == "no_data");
    CHECK(utc_time(strip["since_utc"].get<std::string>()).has_value());
    CHECK_FALSE(stand.monitor->reading().arrival.any);
    const auto started = stand.monitor->reading().arrival.latest;
    stand.monitor->read(stand.run);
    CHECK(stand.monitor->reading().arrival.latest == started);
}
