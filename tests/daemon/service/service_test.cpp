// The control thread while the disk takes its time: a sync that waits until the test lets it go on.
#include "daemon/service/service.hpp"

#include <unistd.h>

#include <future>
#include <memory>
#include <thread>

#include "daemon/control/client.hpp"
#include "tests/daemon/acquisition/scripted_pipeline.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A disk whose syncs wait while it is held.
class HeldDisk {
  public:
    HeldDisk() {
        disk_->sync = [this](int file) {
            wait();
            return ::fdatasync(file);
        };
        disk_->sync_directory = [this](int file) {
            wait();
            return ::fsync(file);
        };
    }
    ~HeldDisk() { release(); }
    /// Lets the next `passing` syncs go on.
    void hold(int passing = 0) {
        passing_ = passing;
        held_ = true;
    }
    void release() { held_ = false; }
    /// Waits until a thread waits for the disk.
    [[nodiscard]] bool waited_for() const {
        return eventually([&] { return waiting_ > 0; });
    }

  private:
    void wait() {
        if (held_ && passing_-- > 0) return;
        ++waiting_;
        eventually([&] { return !held_; });
        --waiting_;
    }
    FaultyDisk disk_;
    std::atomic<bool> held_{false};
    std::atomic<int> passing_{0};
    std::atomic<int> waiting_{0};
};

/// The control socket, the service and an acquisition without data.
class Stand {
  public:
    Stand() {
        setting_.configuration = std::make_shared<const config::Configuration>(configuration_with(
            {{"data_dir", directory_.path().string()}, {"control", {{"socket", socket().string()}}}}));
        setting_.scanner = &scanner_;
        acquisition_ = std::make_unique<Acquisition>(
            AcquisitionOptions{}, TrackerOptions{}, std::make_unique<ScriptedPipeline>(script_), pool_,
            filled_, std::vector<const net::ReceiverCounters*>{},
            [this](FinishedRun finished) { service_->run_finished(std::move(finished)); });
        service_ = std::make_unique<Service>(
            io_, setting_, pool_, 0, std::vector<const net::Receiver*>{}, *acquisition_,
            ServiceCallbacks{[] {}, [] {}, [](const Reply&) {}, [](const HistoryRequest&, const Reply&) {}});
        control_ = std::make_unique<ControlServer>(io_, *service_, setting_.configuration->control);
        acquisition_->start();
        // Without receivers nothing is on its way.
        filled_.lane(0).advance(
            (std::chrono::steady_clock::now() + std::chrono::hours(1)).time_since_epoch().count());
        thread_ = std::thread([this] { io_.run(); });
    }
    ~Stand() {
        disk.release();
        io_.stop();
        thread_.join();
        acquisition_->stop();
        control_.reset();
        service_.reset();
    }
    Stand(const Stand&) = delete;
    Stand& operator=(const Stand&) = delete;

    [[nodiscard]] std::filesystem::path socket() const { return directory_ / "control.sock"; }
    [[nodiscard]] std::filesystem::path run(const std::string& id) const { return directory_ / id; }
    /// The answer of a call in a connection of its own.
    std::future<json> call(const std::string& method, const json& parameters = json::object()) {
        return std::async(std::launch::async, [path = socket(), method, parameters]() -> json {
            ControlClient client(path);
            try {
                return client.call(method, parameters);
            } catch (const RpcError& error) {
                return error.what();
            }
        });
    }
    json state() { return call("status").get()["state"]; }

    HeldDisk disk;

  private:
    TemporaryDirectory directory_;
    const config::Scanner scanner_ = small_scanner();
    RunSetting setting_;
    PipelineScript script_ = [this] {
        PipelineScript script;
        script.histograms = *histograms(scanner_.geometry, 0, 0, 0);
        return script;
    }();
    net::BatchPool pool_{4, 65536, net::make_host_memory({})};
    net::BatchQueue filled_{1, 4};
    boost::asio::io_context io_;
    std::unique_ptr<Acquisition> acquisition_;
    std::unique_ptr<Service> service_;
    std::unique_ptr<ControlServer> control_;
    std::thread thread_;
};

}  // namespace

TEST_CASE("the control thread answers while a start and a stop wait for the disk", "[service]") {
    Stand stand;
    CHECK(stand.state() == "idle");
    stand.disk.hold();
    auto start = stand.call("start", {{"run", "r1"}});
    REQUIRE(stand.disk.waited_for());
    CHECK(stand.state() == "starting");
    CHECK(stand.call("start", {{"run", "r2"}}).get() == "another run is being started");
    CHECK(stand.call("runs").get().is_object());
    stand.disk.release();
    CHECK(start.get()["run"] == "r1");
    CHECK(stand.state() == "running");

    CHECK(stand.call("stop", {{"run", "r0"}}).get() == "the run in progress is r1, not r0");
    CHECK(stand.state() == "running");
    // The start writes this last.
    REQUIRE(eventually([&] { return contains(read_file(stand.run("r1") / "run.json"), "start_ticks"); }));
    stand.disk.hold();
    auto stop = stand.call("stop", {{"run", "r1"}});
    REQUIRE(stand.disk.waited_for());
    REQUIRE(eventually([&] { return stand.state() == "stopping"; }));
    CHECK(stand.call("start", {{"run", "r2"}}).get() == "run r1 is being finalised; stop it first");
    stand.disk.release();
    CHECK(stop.get()["ledger_closed"] == true);
    CHECK(stand.state() == "idle");
}

TEST_CASE("a stop that arrives while the files of the run are created stops it", "[service]") {
    Stand stand;
    stand.disk.hold();
    auto start = stand.call("start", {{"run", "r1"}});
    REQUIRE(stand.disk.waited_for());
    CHECK(stand.call("stop", {{"run", "r0"}}).get() == "the run in progress is r1, not r0");
    auto stop = stand.call("stop", {{"run", "r1"}});
    CHECK(stand.state() == "starting");
    stand.disk.release();
    CHECK(start.get()["run"] == "r1");
    CHECK(stop.get()["run"] == "r1");
    CHECK(stand.state() == "idle");
}

TEST_CASE("the status goes on while a run that never began is removed from a slow disk", "[service]") {
    Stand stand;
    CHECK(stand.call("start", {{"run", "r1"}, {"start_ticks", 1'000'000'000'000}}).get()["run"] == "r1");
    stand.disk.hold(1);  // while some of its files are closed and others are not
    auto stop = stand.call("stop");
    REQUIRE(stand.disk.waited_for());
    const auto uptime_s = [&] { return stand.call("status").get()["uptime_s"].get<double>(); };
    const double before = uptime_s();
    const double interval_s = std::chrono::duration<double>(Monitor::interval).count();
    REQUIRE(eventually([&] { return uptime_s() > before + interval_s; }));  // all counters were read
    CHECK(stand.state() == "stopping");
    stand.disk.release();
    const auto answer = stop.get();
    CHECK(answer["began"] == false);
    CHECK(answer["reason"] == "stopped by operator before its start_ticks");
    CHECK(stand.state() == "idle");
    CHECK_FALSE(std::filesystem::exists(stand.run("r1")));
}

TEST_CASE("a run whose files cannot be created is refused, and its stop with it", "[service]") {
    Stand stand;
    CHECK(stand.call("start", {{"run", "r1"}}).get()["run"] == "r1");
    CHECK(stand.call("stop").get()["run"] == "r1");
    const std::string used = stand.call("start", {{"run", "r1"}}).get();
    CHECK(used.starts_with("run id 'r1' already used"));
    CHECK(stand.state() == "idle");
    CHECK(stand.call("stop").get() == "no run is in progress");
    CHECK(stand.call("start", {{"run", "r2"}}).get()["run"] == "r2");
}
