// Notifications to the service manager: the real daemon with a real notify socket.
#include <csignal>
#include <regex>

#include "daemon/system/notify.hpp"
#include "tests/support/catch.hpp"
#include "tests/systemd/supervised.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

TEST_CASE("READY when the sockets receive, then STATUS and STOPPING", "[systemd][notify]") {
    const Site site;
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    INFO(daemon.log());
    REQUIRE(notify.until("READY=1"));
    // `systemctl status` shows a line at once.
    CHECK(notify.count("STATUS=idle: ") == 1);
    CHECK(notify.count("WATCHDOG=") == 0);

    const json sockets = daemon.call("status").at("sockets");
    const Udp sender;
    sender.connect(sockets.at(0).at("port"));
    REQUIRE(sender.send("anything"));
    CHECK(eventually([&] { return daemon.call("status")["total"]["datagrams"]["received"] == 1; }));

    daemon.call("start", {{"run", "r1"}});
    CHECK(notify.until("STATUS=running r1: "));
    CHECK(notify.count("STOPPING=1") == 0);
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
    CHECK(notify.count("STOPPING=1") == 1);
    CHECK(notify.count("READY=1") == 1);
    // The last status shows no rates.
    CHECK(notify.messages().back() == "STATUS=stopped");
    CHECK(site.run_json("r1")["state"] == "complete");
}

TEST_CASE("a daemon that cannot start is never ready", "[systemd][notify]") {
    const Udp taken;
    const json socket = {{"address", "127.0.0.1"}, {"port", taken.port()}};
    const json patch = {{"receive", {{"sockets", json::array({socket})}}}};
    const Site site(patch);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    CHECK(daemon.wait() == 74);
    CHECK(notify.count("READY=1") == 0);
    CHECK(notify.messages().back().starts_with("STATUS=failed: "));
    CHECK(contains(notify.messages().back(), std::to_string(taken.port())));
}

TEST_CASE("a daemon with an invalid configuration is never ready and sends its error in one line",
          "[systemd][notify]") {
    const json patch = {{"coincidence", {{"window_ticks", -1}}}};
    const Site site(patch);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    CHECK(daemon.wait() == 78);
    REQUIRE(notify.messages().size() == 1);
    CHECK(notify.messages().back().starts_with("STATUS=failed: "));
    CHECK(contains(notify.messages().back(), "/coincidence/window_ticks"));
    CHECK_FALSE(contains(notify.messages().back(), "\n"));
}

TEST_CASE("stopping extends its time limit by the source timeout", "[systemd][notify]") {
    const json patch = {{"watermark", {{"source_timeout_ms", 600'000}}}};
    const Site site(patch);
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    REQUIRE(notify.until("READY=1"));
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
    // 600 s, 10 s for the last slices, 120 s for the files.
    CHECK(notify.count("EXTEND_TIMEOUT_USEC=730000000") == 1);
}

TEST_CASE("the daemon continues without its notify socket", "[systemd][notify]") {
    const Site site;
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {"WATCHDOG_USEC=200000"}});
    REQUIRE(notify.until("WATCHDOG=1", 2));
    notify.close();
    CHECK(daemon.call("start", {{"run", "r1"}})["run"] == "r1");
    CHECK(daemon.call("stop")["ledger_closed"] == true);
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("SIGHUP reads the configuration again", "[systemd][reload]") {
    Site site;
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    REQUIRE(notify.until("READY=1"));
    const auto reload = [&] {
        const std::size_t before = notify.count("READY=1");
        daemon.signal(SIGHUP);
        return notify.until("READY=1", before + 1);
    };

    site.configure({{"health", {{"max_loss_fraction", 0.25}}},
                    {"log_level", "debug"},
                    {"receive", {{"batch_count", 48}}},
                    {"coincidence", {{"window_ticks", 100}}}});
    REQUIRE(reload());
    CHECK(notify.count("RELOADING=1") == 1);
    // systemd needs the time to assign the answer to a reload.
    const auto& messages = notify.messages();
    CHECK(std::any_of(messages.begin(), messages.end(), [](const std::string& message) {
        return std::regex_match(message, std::regex("RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*"));
    }));
    CHECK(daemon.says("reload: /log_level is \"debug\" now"));
    CHECK(daemon.says("reload: /health/max_loss_fraction is 0.25 now"));
    CHECK(daemon.says("reload: /receive/batch_count has changed"));
    CHECK(daemon.says("reload: /coincidence/window_ticks has changed"));

    // A run records the values in force, not those of the file.
    daemon.call("start", {{"run", "r1"}});
    daemon.call("stop");
    const json used = site.run_json("r1")["configuration"];
    CHECK(used["log_level"] == "debug");
    CHECK(used["health"]["max_loss_fraction"] == 0.25);
    CHECK(used["receive"]["batch_count"] == 32);
    CHECK(used["coincidence"]["window_ticks"] == 320);

    // An invalid file changes nothing, not even by its valid keys.
    site.configure({{"log_level", "error"}, {"watermark", {{"max_lag_ms", -1}}}});
    REQUIRE(reload());
    CHECK(daemon.says("reload: the configuration stays as it was: "));
    CHECK(contains(daemon.log(), "/watermark/max_lag_ms"));
    CHECK_FALSE(contains(daemon.log(), "/log_level is \"error\""));
    write_file(site.configuration(), "{");
    REQUIRE(reload());
    CHECK(daemon.says("not JSON"));
    std::filesystem::remove(site.configuration());
    REQUIRE(reload());

    CHECK(daemon.call("status")["state"] == "idle");
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("SIGHUP does not change a run in progress", "[systemd][reload]") {
    Site site;
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify});
    REQUIRE(notify.until("READY=1"));
    daemon.call("start", {{"run", "r1"}});
    site.configure({{"log_level", "warning"}});
    daemon.signal(SIGHUP);
    REQUIRE(notify.until("READY=1", 2));
    CHECK(daemon.call("stop")["reason"] == "stopped by operator");
    // The run keeps the configuration with which it started.
    CHECK(site.run_json("r1")["configuration"]["log_level"] == "info");
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("the status in one line", "[systemd][notify]") {
    const auto line = [](const json& patch) {
        json status = {{"state", "idle"},
                       {"run", nullptr},
                       {"rates", {{"frames_per_s", 0.0}, {"prompts_per_s", nullptr}}},
                       {"health", {{"state", "ok"}, {"reasons", json::array()}}}};
        status.merge_patch(patch);
        return daemon::status_line(status);
    };
    CHECK(line(json::object()) == "idle: 0 frames/s, ok");
    CHECK(line({{"state", "running"},
                {"run", {{"id", "r1"}}},
                {"rates", {{"frames_per_s", 12.34e6}, {"prompts_per_s", 1.2e6}}}}) ==
          "running r1: 12.3 M frames/s, 1.20 M prompts/s, ok");
    CHECK(line({{"rates", {{"frames_per_s", 999.4}, {"prompts_per_s", 1e3}}}}) ==
          "idle: 999 frames/s, 1.00 k prompts/s, ok");
    CHECK(line({{"rates", {{"frames_per_s", 999.6e3}}}}) == "idle: 1.00 M frames/s, ok");
    CHECK(line({{"rates", {{"frames_per_s", 123.4e9}}}}) == "idle: 123 G frames/s, ok");
    const json reason = {{"message", "source 3 is silent for 2.1 s"}};
    CHECK(line({{"health", {{"state", "degraded"}, {"reasons", {reason}}}}}) ==
          "idle: 0 frames/s, degraded (source 3 is silent for 2.1 s)");
    CHECK(line({{"health", {{"state", "failed"}, {"reasons", {reason, reason, reason}}}}}) ==
          "idle: 0 frames/s, failed (source 3 is silent for 2.1 s; 2 more)");
}
