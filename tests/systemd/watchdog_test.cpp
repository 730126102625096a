// The daemon feeds the watchdog while every stage makes progress, and only then.
#include <atomic>
#include <csignal>
#include <future>

#include "daemon/system/watchdog.hpp"
#include "tests/support/catch.hpp"
#include "tests/systemd/supervised.hpp"

using namespace petacq;
using namespace petacq::test;
using namespace std::chrono_literals;

namespace {

const nlohmann::json quick_disk = {{"listmode", {{"sync_interval_ms", 50}}}};  // NOLINT(cert-err58-cpp)

}  // namespace

TEST_CASE("the watchdog is fed while no stage is stalled", "[systemd][watchdog]") {
    std::atomic<daemon::Activity> writer = daemon::Activity::busy;
    std::atomic<int> looks = 0;
    std::atomic<int> fed = 0;
    const daemon::Watchdog watchdog(
        2ms,
        [&] {
            ++looks;
            return std::vector<daemon::StageState>{{"acquisition", daemon::Activity::idle, 0, 0},
                                                   {"writer", writer, 1, 0}};
        },
        [&] { ++fed; });
    const auto look = [&](int times) {
        const int before = looks;
        REQUIRE(eventually([&] { return looks >= before + times; }));
    };
    for (const daemon::Activity activity :
         {daemon::Activity::idle, daemon::Activity::stalled, daemon::Activity::busy}) {
        writer = activity;
        look(2);  // the look that saw the earlier activity is over
        const int before = fed;
        look(3);
        CHECK((fed > before) == (activity != daemon::Activity::stalled));
    }
}

TEST_CASE("the watchdog is fed by the stages, whatever holds up the control thread", "[systemd][watchdog]") {
    const Site site(quick_disk);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {"WATCHDOG_USEC=400000"}});
    REQUIRE(notify.until("READY=1"));
    {
        const StoppedThread stopped = StoppedThread::main_of(daemon.pid());
        CHECK(notify.until("WATCHDOG=1", notify.count("WATCHDOG=1") + 3));
    }
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("a stage that stalls with work waiting starves the watchdog", "[systemd][watchdog]") {
    const Site site(quick_disk);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {"WATCHDOG_USEC=400000"}});
    // A stage without work is not stalled.
    REQUIRE(notify.until("WATCHDOG=1", 5));
    const std::uint16_t port = daemon.call("status")["sockets"][0]["port"];
    const Udp sender;
    sender.connect(port);

    const auto stalled = GENERATE(
        table<std::string, std::string>({{"receive", "receiver 0"}, {"acquisition", "acquisition"}}));
    const std::string thread = std::get<0>(stalled);
    const std::string stage = std::get<1>(stalled);
    INFO(stage);
    {
        const StoppedThread stopped(daemon.pid(), thread);
        std::uint64_t sequence = 0;
        // The work waits in the socket of a stopped receiver, or in the queue of a stopped acquisition.
        REQUIRE(eventually([&] {
            notify.messages();  // a full queue would block the daemon
            return sender.send(heartbeat(1, sequence++)) &&
                   contains(daemon.log(), "stage " + stage + " has stalled");
        }));
        const std::size_t fed = notify.count("WATCHDOG=1");
        // Only waiting shows that no notification arrives: ten intervals of the watchdog.
        CHECK_FALSE(eventually([&] { return notify.count("WATCHDOG=1") > fed; }, 2s));
    }
    CHECK(daemon.says("stage " + stage + " works again"));
    CHECK(notify.until("WATCHDOG=1", notify.count("WATCHDOG=1") + 2));
    // The log reports the stall once.
    const std::string log = daemon.log();
    CHECK(log.find("has stalled") == log.rfind("has stalled"));
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("a stalled writer starves the watchdog, and its run is complete afterwards",
          "[systemd][watchdog]") {
    const Site site(quick_disk);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {"WATCHDOG_USEC=400000"}});
    REQUIRE(notify.until("READY=1"));
    const std::uint16_t port = daemon.call("status")["sockets"][0]["port"];
    daemon.call("start", {{"run", "r1"}});
    {
        const StoppedThread stopped(daemon.pid(), "listmode");
        simulate(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--flush-us", "4000",
                        "--duration-s", "0.3", "--to", "127.0.0.1:" + std::to_string(port)});
        CHECK(daemon.says("stage writer has stalled"));
        const std::size_t fed = notify.count("WATCHDOG=1");
        CHECK_FALSE(eventually([&] { return notify.count("WATCHDOG=1") > fed; }, 2s));
    }
    CHECK(daemon.says("stage writer works again"));
    CHECK(daemon.call("stop")["ledger_closed"] == true);
    CHECK(site.run_json("r1")["state"] == "complete");
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("a run that cannot finish its files starves the watchdog", "[systemd][watchdog]") {
    const Site site(quick_disk);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {"WATCHDOG_USEC=400000"}});
    REQUIRE(notify.until("READY=1"));
    daemon.call("start", {{"run", "r1"}});
    std::future<nlohmann::json> stop;
    {
        const StoppedThread stopped(daemon.pid(), "listmode");
        stop = std::async(std::launch::async, [&] { return daemon.call("stop"); });
        CHECK(daemon.says("stage run end has stalled"));
        const std::size_t fed = notify.count("WATCHDOG=1");
        CHECK_FALSE(eventually([&] { return notify.count("WATCHDOG=1") > fed; }, 2s));
    }
    CHECK(stop.get()["ledger_closed"] == true);
    CHECK(daemon.says("stage run end works again"));
    CHECK(site.run_json("r1")["state"] == "complete");
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}
