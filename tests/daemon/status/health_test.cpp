// Health: each problem is found, and its start and end are reported once each.
#include "daemon/status/health.hpp"

#include <fstream>
#include <functional>
#include <iterator>

#include "daemon/status/status.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

Problem problem(const char* code, std::uint32_t subject = 0, bool failed = false) {
    return {code, subject, "what", "advice", failed};
}

/// An acquisition in good health, read once a second.
class Patient {
  public:
    explicit Patient(const json& patch = json::object()) {
        setting.configuration = std::make_shared<const config::Configuration>(configuration_with(patch));
        setting.scanner = &scanner;
        now.total.datagrams.received = 1000;
        now.total.frames.received = 100'000;
        now.histograms = histograms(scanner.geometry, 0, 100, 30);
        for (const std::uint16_t id : {std::uint16_t{3}, std::uint16_t{5}}) {
            SourceStatus source;
            source.id = id;
            source.state = SourceState::active;
            source.lost = 0;
            now.sources.sources.push_back(source);
        }
        reading.disk = DiskStatus{DiskSpace{100ULL << 30, 200ULL << 30}, 0};
        reading.stages = {{"acquisition", Activity::busy, 0.5, 0}, {"writer", Activity::idle, 0, 0}};
        second();
    }

    /// The next second: 10,000 more datagrams, and `happens`.
    std::vector<HealthChange> second(const std::function<void(Patient&)>& happens = nullptr) {
        before = now;
        Reading reading_before = reading;
        time += 1;
        now.taken = at(time);
        now.total.datagrams.received += 10'000;
        now.total.frames.received += 1'000'000;
        for (SourceStatus& s : now.sources.sources)
            s.last_seen = ns_at(time);
        if (happens) happens(*this);
        reading.taken = at(time);
        reading.acquisition = std::make_shared<const AcquisitionSnapshot>(now);
        reading_before.acquisition = std::make_shared<const AcquisitionSnapshot>(before);
        const Observation seen{&setting, &run, &reading, &reading_before, &before, &health};
        return health.observe(find_problems(seen), at(time));
    }

    RunReading& open_run() {
        if (!reading.run) reading.run.emplace();
        return *reading.run;
    }

    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    RunState run;
    AcquisitionSnapshot now;
    AcquisitionSnapshot before;
    Reading reading;
    Health health;
    double time = 0;
};

struct Case {
    const char* code;
    const char* says;                         ///< part of the message
    std::function<void(Patient&)> falls_ill;  ///< each second
    std::function<void(Patient&)> gets_well;
    const char* state = "degraded";
    std::uint32_t subject = 0;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"pipeline_failed", "pipeline: no device", [](Patient& p) { p.now.failure = "pipeline: no device"; },
         [](Patient& p) { p.now.failure.clear(); }, "failed"},
        {"run_failed", "No space left", [](Patient& p) { p.run.last_failure = "No space left"; },
         [](Patient& p) { p.run.last_failure.clear(); }},
        {"no_data", "no data have arrived",
         [](Patient& p) {
             p.now.run.emplace();
             p.before.run.emplace();
             p.now.total.datagrams.received = 0;
             p.now.sources.sources.clear();
         },
         [](Patient& p) { p.now.total.datagrams.received = 10; }},
        {"datagrams_lost", "20 datagrams (0.2 %) lost, 15 of them from source 5",
         [](Patient& p) {
             p.now.total.datagrams.received -= 20;  // 9,980 of 10,000 arrive
             p.now.total.datagrams.lost += 20;
             *p.now.sources.sources[0].lost += 5;
             *p.now.sources.sources[1].lost += 15;
         },
         nullptr},
        {"kernel_drops", "the kernel dropped 1 datagram:",
         [](Patient& p) { p.now.total.datagrams.dropped_kernel += 1; }, nullptr},
        {"no_free_batch", "2 datagrams dropped",
         [](Patient& p) { p.now.total.datagrams.dropped_no_buffer += 2; }, nullptr},
        {"malformed_datagrams", "50 datagrams (0.5 %) malformed",
         [](Patient& p) { p.now.total.datagrams.malformed += 50; }, nullptr},
        {"invalid_frames", "6000 frames (0.6 %) invalid",
         [](Patient& p) {
             p.now.total.frames.bad_marker += 1000;
             p.now.total.frames.bad_address += 2000;
             p.now.total.frames.bad_time += 3000;
         },
         nullptr},
        {"late_frames", "too late", [](Patient& p) { p.now.total.frames.late += 1000; }, nullptr},
        {"time_jumps", "far from the time", [](Patient& p) { p.now.total.frames.time_jump += 1000; },
         nullptr},
        {"sources_behind", "their frames are late", [](Patient& p) { p.now.sources.behind_watermark = true; },
         [](Patient& p) { p.now.sources.behind_watermark = false; }},
        {"sources_given_up", "max_pending_singles", [](Patient& p) { ++p.now.given_up; }, nullptr},
        {"source_silent", "source 5 has been silent for 2.5 s: check",
         [](Patient& p) {
             p.now.sources.sources[1].state = SourceState::silent;
             p.now.sources.sources[1].last_seen = ns_at(p.time - 2.5);
         },
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::active; }, "degraded", 1},
        {"source_lagging", "source 3 lags 2000 ms behind",
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::lagging;
             p.now.sources.sources[0].skew = -static_cast<std::int64_t>(2e12 / p.scanner.tick_ps);
         },
         [](Patient& p) { p.now.sources.sources[0].state = SourceState::active; }},
        {"source_leading", "source 3 is 3000 ms ahead",
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::leading;
             p.now.sources.sources[0].skew = static_cast<std::int64_t>(3e12 / p.scanner.tick_ps);
         },
         [](Patient& p) { p.now.sources.sources[0].state = SourceState::active; }},
        {"source_jumping", "source 5 jumps",
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::jumping; },
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::active; }, "degraded", 1},
        {"temperature_high", "module 7 is at 61.0 C, above 50 C",
         [](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 7, 100, 61); },
         [](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 7, 100, 40); }, "degraded", 7},
        {"disk_slow", "does not keep up", [](Patient& p) { ++p.open_run().written.stalls; }, nullptr},
        {"capture_incomplete", "7 datagrams missing from the raw capture",
         [](Patient& p) {
             if (!p.open_run().capture) p.open_run().capture = CaptureStatus{};
             p.open_run().capture->counts.dropped += 7;
         },
         nullptr},
        {"disk_unknown", "free space of /data is unknown", [](Patient& p) { p.reading.disk.space.reset(); },
         [](Patient& p) {
             p.reading.disk.space = DiskSpace{100ULL << 30, 200ULL << 30};
         }},
        {"disk_space_low", "0.50 GiB are free in /data",
         [](Patient& p) { p.reading.disk.space->free_bytes = 512ULL << 20; },
         [](Patient& p) { p.reading.disk.space->free_bytes = 2ULL << 30; }},
        {"disk_time_low", "/data will be full in 100 s",
         [](Patient& p) { p.reading.disk.write_bytes_per_s = 0x1p30; },
         [](Patient& p) { p.reading.disk.write_bytes_per_s = 0x1p20; }},
        {"latency_high", "more than 7000 ms",
         [](Patient& p) {
             p.open_run().latency = {100, 10, 7000, 8000};
         },
         [](Patient& p) {
             p.open_run().latency = {100, 10, 20, 8000};
         }},
        {"stage_stalled", "writer has made no progress for 9 s: the disk does not respond",
         [](Patient& p) {
             p.reading.stages[1] = {"writer", Activity::stalled, 0, 9};
         },
         [](Patient& p) {
             p.reading.stages[1] = {"writer", Activity::busy, 0.1, 0};
         },
         "failed", 1},
    };
    return all;
}

}  // namespace

TEST_CASE("a healthy acquisition gives no reason") {
    Patient patient;
    for (int i = 0; i < 10; ++i)
        CHECK(patient.second().empty());
    CHECK(patient.health.reasons().empty());
    CHECK(std::string(patient.health.state()) == "ok");
}

TEST_CASE("every problem is reported once, lasts, and is reported to be over once") {
    for (const Case& c : cases()) {
        INFO(c.code);
        Patient patient;
        const auto raised = patient.second(c.falls_ill);
        REQUIRE(raised.size() == 1);
        CHECK(raised[0].raised);
        CHECK(std::string(raised[0].reason.problem.code) == c.code);
        CHECK(raised[0].reason.problem.subject == c.subject);
        CHECK(raised[0].reason.problem.message().find(c.says) != std::string::npos);
        INFO(raised[0].reason.problem.message());
        CHECK(std::string(patient.health.state()) == c.state);
        REQUIRE(patient.health.reasons().size() == 1);
        CHECK(patient.health.reasons()[0].since == at(patient.time));

        const double since = patient.time;
        for (int i = 0; i < 3; ++i)
            CHECK(patient.second(c.falls_ill).empty());
        REQUIRE(patient.health.reasons().size() == 1);
        CHECK(patient.health.reasons()[0].since == at(since));

        std::vector<HealthChange> gone;
        int seconds = 0;
        for (; gone.empty() && seconds < 20; ++seconds)
            gone = patient.second(c.gets_well);
        CHECK(seconds <= 6);
        REQUIRE(gone.size() == 1);
        CHECK_FALSE(gone[0].raised);
        CHECK(std::string(gone[0].reason.problem.code) == c.code);
        CHECK(std::string(patient.health.state()) == "ok");
        for (int i = 0; i < 10; ++i)
            CHECK(patient.second(c.gets_well).empty());
    }
}

TEST_CASE("the manual lists exactly the codes that there are") {
    const auto section_of = [](const char* file, const std::string& heading) {
        const std::string page = test::read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "docs" / file);
        const std::size_t begin = page.find("\n## " + heading);
        REQUIRE(begin != std::string::npos);
        return page.substr(begin, page.find("\n## ", begin + 1) - begin);
    };
    const auto rows_of = [](const std::string& section) {
        std::size_t rows = 0;
        for (std::size_t row = section.find("\n| `"); row != std::string::npos;
             row = section.find("\n| `", row + 1))
            ++rows;
        return rows;
    };
    const std::string status = section_of("reference/status.md", "Health reasons");
    const std::string operations = section_of("how-to/operations.md", "Health:");
    CHECK(rows_of(status) == cases().size());
    CHECK(rows_of(operations) == cases().size());
    for (const Case& c : cases()) {
        INFO(c.code);
        const std::string word = std::string("| `").append(c.code).append("` | ");
        CHECK(status.find(word + c.state) != std::string::npos);
        CHECK(operations.find(word) != std::string::npos);
    }
}

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
    Health health;
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
    Health health;
    Problem now_or_never = problem("run_failed");
    now_or_never.lasts = {};
    CHECK(health.observe({now_or_never}, at(1)).size() == 1);
    CHECK(health.observe({}, at(1.5)).size() == 1);
    CHECK(health.reasons().empty());
}

TEST_CASE("the same problem of two sources is two reasons, the worst is the state") {
    Health health;
    CHECK(health.observe({problem("source_silent", 1), problem("source_silent", 2)}, at(1)).size() == 2);
    CHECK(std::string(health.state()) == "degraded");
    CHECK(health.find("source_silent", 2) != nullptr);
    CHECK(health.find("source_silent", 3) == nullptr);
    CHECK(health.find("source_lagging", 2) == nullptr);
    health.observe({problem("source_silent", 1), problem("stage_stalled", 0, true)}, at(2));
    CHECK(std::string(health.state()) == "failed");
}

TEST_CASE("a threshold is crossed back by a margin") {
    Patient patient(json{{"health", {{"max_temperature_C", 40}, {"max_latency_ms", 100}}}});
    const auto hot = [&](double temperature) {
        patient.second(
            [&](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 2, 10, temperature); });
        return patient.health.find("temperature_high", 2) != nullptr;
    };
    CHECK_FALSE(hot(39.5));
    CHECK(hot(40.5));
    for (int i = 0; i < 20; ++i)
        CHECK(hot(39));  // not 2 degrees below
    for (int i = 0; i < 6; ++i)
        hot(37.5);
    CHECK_FALSE(hot(37.5));

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
