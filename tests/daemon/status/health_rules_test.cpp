// Health: what is one problem, what is none, and how long it lasts.
#include "tests/daemon/status/patient.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

TEST_CASE("counters of an earlier run do not hide the problems of the next one") {
    Patient patient;
    patient.second([](Patient& p) {
        p.open_run().id = "first";
        p.open_run().written.stalls = 100;
    });
    for (int i = 0; i < 10; ++i)
        patient.second();
    REQUIRE(patient.health.reasons().empty());
    patient.second([](Patient& p) {
        p.open_run().id = "second";
        p.open_run().written.stalls = 1;
    });
    CHECK(patient.health.find("disk_slow") != nullptr);
}

TEST_CASE("a problem that comes and goes is one reason") {
    LastingReasons health;
    int told = 0;
    for (int i = 0; i < 30; ++i) {
        std::vector<Problem> problems;
        if (i % 4 == 0) problems.push_back(problem("datagrams_lost"));
        told += static_cast<int>(health.observe(problems, at(i)).size());
    }
    CHECK(told == 1);
    CHECK(health.observe({}, at(33)).size() == 1);
}

TEST_CASE("a problem that does not last disappears at once") {
    LastingReasons health;
    Problem now_or_never = problem("run_failed");
    now_or_never.lasts = {};
    CHECK(health.observe({now_or_never}, at(1)).size() == 1);
    CHECK(health.observe({}, at(1.5)).size() == 1);
    CHECK(health.reasons().empty());
}

TEST_CASE("the same problem of two sources is two reasons, the worst is the state") {
    LastingReasons health;
    CHECK(health.observe({problem("source_silent", 1), problem("source_silent", 2)}, at(1)).size() == 2);
    CHECK(std::string(health.state()) == "degraded");
    CHECK(health.find("source_silent", 2) != nullptr);
    CHECK(health.find("source_silent", 3) == nullptr);
    CHECK(health.find("source_lagging", 2) == nullptr);
    health.observe({problem("source_silent", 1), problem("stage_stalled", 0, true)}, at(2));
    CHECK(std::string(health.state()) == "failed");
}

TEST_CASE("a threshold is crossed back by a margin") {
    Patient patient(
        json{{"health", {{"max_temperature_C", 40}, {"max_latency_ms", 100}, {"max_loss_fraction", 0.001}}}});
    const auto hot = [&](double temperature) {
        patient.second(
            [&](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 2, 10, temperature); });
        return patient.health.find("temperature_high", 2) != nullptr;
    };
    CHECK_FALSE(hot(39.5));
    CHECK(hot(40.5));
    for (int i = 0; i < 20; ++i)
        CHECK(hot(39));  // not 2 degrees below
    CHECK(patient.health.find("temperature_high", 2)->problem.what ==
          "BDM 2 was above 40 C and is at 39.0 C, not yet below 38 C");
    for (int i = 0; i < 6; ++i)
        hot(37.5);
    CHECK_FALSE(hot(37.5));

    const auto lossy = [&](int lost) -> std::string {
        patient.second([&](Patient& p) {
            p.now.total.datagrams.received -= lost;
            p.now.total.datagrams.lost += lost;
        });
        const HealthReason* reason = patient.health.find("datagrams_lost");
        return reason != nullptr ? reason->problem.what : "";
    };
    CHECK(lossy(9).empty());
    CHECK(lossy(20) == "20 datagrams (0.2 %) lost");
    for (int i = 0; i < 20; ++i)
        CHECK(lossy(7) == "7 datagrams (0.07 %) lost, not yet below 0.05 %");
    for (int i = 0; i < 6; ++i)
        lossy(3);
    CHECK(lossy(3).empty());

    const auto filling = [&](double left_s) -> std::string {
        patient.second([&](Patient& p) {
            p.reading.disk.write_bytes_per_s = static_cast<double>(p.reading.disk.space->free_bytes) / left_s;
        });
        const HealthReason* reason = patient.health.find("disk_time_low");
        return reason != nullptr ? reason->problem.what : "";
    };
    CHECK(filling(620).empty());
    CHECK(filling(590) == "/data will be full in 9 min 50 s at the present rate");
    for (int i = 0; i < 20; ++i) {
        CHECK(filling(660) ==
              "/data will be full in 11 min 00 s at the present rate, not yet above 12 min 30 s");
    }
    for (int i = 0; i < 6; ++i)
        filling(800);
    CHECK(filling(800).empty());

    const auto slow = [&](double p99) {
        patient.second([&](Patient& p) { p.open_run().latency = {100, 1, p99, p99}; });
        return patient.health.find("latency_high") != nullptr;
    };
    CHECK_FALSE(slow(100));
    CHECK(slow(101));
    for (int i = 0; i < 20; ++i)
        CHECK(slow(90));
    for (int i = 0; i < 6; ++i)
        slow(70);
    CHECK_FALSE(slow(70));
}

TEST_CASE("values below the thresholds of the configuration are no problem") {
    Patient patient(json{{"health",
                          {{"max_loss_fraction", 0.01},
                           {"max_temperature_C", 70},
                           {"min_disk_free_bytes", 0},
                           {"min_disk_time_s", 0},
                           {"max_latency_ms", 10'000}}}});
    patient.second([](Patient& p) {
        p.now.total.datagrams.lost += 50;
        p.now.total.frames.late += 5000;
        p.now.histograms = histograms(p.scanner.geometry, 7, 100, 61);
        p.reading.disk.space->free_bytes = 1;
        p.reading.disk.write_bytes_per_s = 0x1p30;
        p.open_run().latency = {100, 10, 7000, 8000};
    });
    CHECK(patient.health.reasons().empty());
}

TEST_CASE("a board without hits that sends heartbeats is healthy") {
    Patient patient;
    patient.second([](Patient& p) { p.now.sources.sources[0].state = SourceState::silent; });
    CHECK(patient.health.reasons().empty());
}

TEST_CASE("a board that stops sending does not lag") {
    Patient patient;
    const auto lagging = [&](double lag_s, double silent_s) {
        patient.second([&](Patient& p) {
            SourceStatus& s = p.now.sources.sources[0];
            s.state = SourceState::lagging;
            s.skew = -static_cast<std::int64_t>(lag_s * 1e12 / p.scanner.tick_ps);
            s.last_seen = ns_at(p.time - silent_s);
        });
        return patient.health.find("source_lagging", 0) != nullptr;
    };
    CHECK_FALSE(lagging(1.15, 1.1));
    CHECK_FALSE(lagging(2.15, 2.1));
    CHECK(lagging(2.15, 0.1));
}

TEST_CASE("a counter that decreases is no problem") {
    Patient patient;
    patient.second([](Patient& p) { p.before.total.datagrams.lost = 1000; });
    CHECK(patient.health.reasons().empty());
}

TEST_CASE("messages name sources with bare framing by their address") {
    Patient patient(json{{"receive", {{"framing", "bare"}}}});
    patient.second([](Patient& p) {
        SourceStatus& s = p.now.sources.sources[0];
        s.address = 0x7F000001;
        s.port = 9601;
        s.state = SourceState::silent;
        s.last_seen.reset();
    });
    REQUIRE(patient.health.reasons().size() == 1);
    CHECK(patient.health.reasons()[0].problem.what ==
          "source 127.0.0.1:9601 has been silent since the daemon started");
}

TEST_CASE("health says what the other host of a pair does instead of recording the run") {
    const auto& [answer, message] = GENERATE(table<PeerAnswer, std::string>(
        {{peer_failure("it cannot be reached"),
          "hostB cannot be asked for 5.0 s: it cannot be reached: start "},
         {{"", "", "no_data"}, "hostB has no run: `petctl --hosts "},
         {{"", "mouse-6", "recording"}, "hostB records run mouse-6: stop that run there"},
         {{"", "mouse-7-2", "no_data"},
          "hostB has its run mouse-7-2, and records nothing (no_data): its page"}}));
    PeerJudge judge("http://hostB:9680", at(1));
    Patient patient;
    patient.run.current.emplace().id = "mouse-7";
    judge.hear({"", "mouse-7", "recording"}, at(1));
    const auto second = [&] {
        patient.second([&](Patient& p) { p.reading.peer = judge.judge({"mouse-7", true}, at(p.time)); });
        return patient.health.find("peer_missing");
    };
    CHECK(second() == nullptr);
    judge.hear(answer, at(answer.failure.empty() ? 2 : 1));
    for (int i = 0; i < 3; ++i)
        CHECK(second() == nullptr);
    const HealthReason* reason = second();
    REQUIRE(reason != nullptr);
    INFO(reason->problem.message());
    CHECK(reason->problem.message().find("run mouse-7 is recorded by this host alone: " + message) == 0);
    judge.hear({"", "mouse-7", "recording"}, at(7));
    CHECK(second() == nullptr);
}
