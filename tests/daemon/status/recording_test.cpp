// `recording`: the word for the first glance, and what stands beside it.
#include <cmath>

#include "daemon/status/document_recording.hpp"
#include "daemon/system/utc.hpp"
#include "tests/daemon/status/patient.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A scanner whose latest frame came `quiet_s` ago, at 02:14:07 UTC.
struct Night : Patient {
    explicit Night(double quiet_s = 0.3) {
        second();
        reading.arrival = {true, at(time - quiet_s), utc_time("2026-11-24T02:14:07Z").value()};
    }
    void start_run() {
        run.daemon = DaemonState::running;
        run.current = {"night-3", "mouse 7", utc_time("2026-11-24T01:00:00Z").value(), 3600, {}, {}, {}};
        AcquisitionSnapshot then = now;
        then.taken = at(time - 725);
        run.start = std::make_shared<const AcquisitionSnapshot>(then);
        run.data_since = at(time - 725);
        now.run.emplace().pairs.prompts_found = 1'234'567;
        now.run_start = 1000;
        reading.acquisition = std::make_shared<const AcquisitionSnapshot>(now);
        open_run().written.bytes = 47'000'000;
        open_run().seconds_bytes = 3'000'000;
        open_run().capture.emplace().counts.bytes = 2'400'000;
        reading.disk = {DiskSpace{40'000'000'000, 80'000'000'000}, 1e6};
    }
    [[nodiscard]] json strip() const {
        return make_recording({&setting, &run, &reading, &reading, &now, &health});
    }
};

}  // namespace

TEST_CASE("recording: datagrams of another format are no silence") {
    Night night;
    AcquisitionSnapshot later = night.now;
    later.total.datagrams.malformed += 100;
    Reading before = night.reading;
    before.acquisition = std::make_shared<const AcquisitionSnapshot>(night.now);
    night.reading.acquisition = std::make_shared<const AcquisitionSnapshot>(later);
    night.reading.arrival.latest = night.reading.taken - std::chrono::minutes(5);
    const json strip =
        make_recording({&night.setting, &night.run, &night.reading, &before, &night.now, &night.health});
    CHECK(strip["state"] == "no_data");
    CHECK(strip["text"].get<std::string>().starts_with("datagrams arrive, but they are malformed"));
}

TEST_CASE("recording: a run in progress for which frames arrive") {
    Night night;
    night.start_run();
    CHECK(night.strip() == json{{"state", "recording"},
                                {"word", "RECORDING"},
                                {"text",
                                 "run night-3: 12 min 05 s of 1 h 00 min, 1.235 M prompts, 52.4 MB at 1 "
                                 "MB/s, disk full in 11 h 07 min"},
                                {"run_id", "night-3"},
                                {"note", "mouse 7"},
                                {"elapsed_s", 725.0},
                                {"requested_s", 3600.0},
                                {"prompts", 1'234'567},
                                {"bytes", 52'400'000},
                                {"disk_time_left_s", 40'000.0},
                                {"since_utc", nullptr},
                                {"command", nullptr}});

    SECTION("until somebody stops it, while it is being finalised") {
        night.run.current->duration_s.reset();
        night.reading.run.reset();
        night.reading.disk.write_bytes_per_s = 0;
        const json strip = night.strip();
        CHECK(strip["text"] == "run night-3: 12 min 05 s, 1.235 M prompts");
        for (const char* unknown : {"requested_s", "bytes", "disk_time_left_s"})
            CHECK(strip[unknown].is_null());
    }
    SECTION("of which nothing gets onto the disk") {
        night.reading.disk.write_bytes_per_s = 0;
        CHECK(night.strip()["text"] ==
              "run night-3: 12 min 05 s of 1 h 00 min, 1.235 M prompts, 52.4 MB, not growing");
    }
    SECTION("up to a time that was asked for") {
        night.run.current->duration_s.reset();
        night.reading.acquisition = std::make_shared<const AcquisitionSnapshot>(night.now);
        night.run.current->stop_ticks = 1000 + static_cast<std::uint64_t>(60e12 / night.scanner.tick_ps);
        CHECK(std::abs(night.strip()["requested_s"].get<double>() - 60) < 1e-6);
    }
    SECTION("that is being stopped") {
        night.run.daemon = DaemonState::stopping;
        CHECK(night.strip()["text"].get<std::string>().starts_with("run night-3: stopping, 12 min"));
    }
    SECTION("although an earlier one was interrupted") {
        night.run.interrupted = {{"night-1", "/data/night-1", ""}};
        CHECK(night.strip()["state"] == "recording");
        CHECK(night.strip()["text"].get<std::string>().ends_with("; run night-1 was interrupted earlier"));
    }
}

TEST_CASE("recording: a run in progress is not recorded while a part of the daemon stands still") {
    Night night;
    night.start_run();
    night.reading.stages[1] = {"writer", Activity::stalled, 0, 12};
    const json strip = night.strip();
    CHECK(strip["state"] == "not_recording");
    CHECK(strip["text"] == "run night-3 is in progress, but its writer has made no progress for 12.0 s");
    CHECK(strip["run_id"] == "night-3");
    CHECK(strip["bytes"] == 52'400'000);
}

TEST_CASE("recording: a run that waits for its first data says so, and what its duration counts from") {
    Night night;
    night.start_run();
    night.run.data_since.reset();
    night.now.run_start.reset();
    night.reading.acquisition = std::make_shared<const AcquisitionSnapshot>(night.now);
    CHECK(night.strip()["state"] == "waiting_for_data");
    CHECK(night.strip()["word"] == "WAITING FOR DATA");
    CHECK(night.strip()["elapsed_s"] == 0.0);
    CHECK(night.strip()["text"] ==
          "run night-3 begins with its first data: frames arrive, but the time of their boards is not known "
          "yet; "
          "its 1 h 00 min count from then");
    night.reading.arrival.latest = at(night.time - 65);
    night.run.current->duration_s.reset();
    CHECK(night.strip()["text"] ==
          "run night-3 begins with its first data: no frames have arrived for 1 min 05 s");
    night.run.daemon = DaemonState::stopping;
    CHECK(night.strip()["state"] == "no_data");
}

TEST_CASE("recording: a run that has not started yet is not recorded") {
    Night night;
    night.start_run();
    night.run.start.reset();
    CHECK(night.strip()["state"] == "not_recording");
    CHECK(night.strip()["text"] == "run night-3 is being started");
    CHECK(night.strip()["run_id"] == "night-3");
    night.reading.arrival.latest = at(night.time - 65);
    CHECK(night.strip()["text"].get<std::string>().starts_with(
        "run night-3 is being started, but no frames have arrived for 1 min 05 s"));
}

TEST_CASE("recording: how the last run ended") {
    Night night;
    night.run.ended = {"night-3", utc_time("2026-11-24T01:12:05Z"), "No space left on device", true};
    CHECK(night.strip()["text"] ==
          "frames arrive, no run is in progress; the last run, night-3, failed at 01:12:05 UTC: No space "
          "left on device");
    night.run.ended = {"night-3", utc_time("2026-11-22T03:12:05Z"), "duration reached", false};
    CHECK(night.strip()["text"] ==
          "frames arrive, no run is in progress; the last run, night-3, ended at 2026-11-22 03:12:05 UTC: "
          "duration reached");
    night.run.ended = {"night-3", {}, "", true};
    CHECK(night.strip()["text"] == "frames arrive, no run is in progress; the last run, night-3, failed");
    night.reading.arrival.latest = at(night.time - 65);
    CHECK(night.strip()["text"].get<std::string>().ends_with(
        "since 02:14:07 UTC; the last run, night-3, failed"));
    night.start_run();
    CHECK_FALSE(contains(night.strip()["text"], "last run"));
}

TEST_CASE("recording: a failed run looks failed until the next one starts, whether frames arrive or not") {
    const double quiet = GENERATE(0.0, 65.0);
    Night night(quiet);
    night.run.ended = {"night-3", {}, "No space left on device", true};
    const json strip = night.strip();
    CHECK(strip["state"] == "failed");
    CHECK(strip["word"] == "RUN FAILED");
    CHECK(strip["run_id"] == "night-3");
    CHECK(contains(strip["text"], "the last run, night-3, failed: No space left on device"));
    CHECK(contains(strip["text"], "no frames have arrived for 1 min 05 s") == (quiet > 0));
    night.run.interrupted = {{"night-1", "/data/night-1", ""}};
    CHECK(night.strip()["state"] == "interrupted");
    night.start_run();
    CHECK(night.strip()["state"] != "failed");
}

TEST_CASE("recording: a run in progress for which nothing arrives is no data") {
    Night night(65);
    night.start_run();
    const json strip = night.strip();
    CHECK(strip["state"] == "no_data");
    CHECK(strip["word"] == "NO DATA");
    CHECK(strip["text"] ==
          "run night-3 is in progress, but no frames have arrived for 1 min 05 s, since 02:14:07 UTC");
    CHECK(strip["since_utc"] == "2026-11-24T02:14:07.000Z");
    CHECK(strip["run_id"] == "night-3");
    CHECK(strip["elapsed_s"] == 725);
    night.run.interrupted = {{"night-1", "/data/night-1", ""}};
    CHECK(night.strip()["text"].get<std::string>().ends_with("; run night-1 was interrupted earlier"));
}

TEST_CASE("recording: frames without a run, and no frames") {
    {
        Night night;
        CHECK(night.strip()["state"] == "not_recording");
        CHECK(night.strip()["word"] == "NOT RECORDING");
        CHECK(night.strip()["text"] == "frames arrive, no run is in progress");
        CHECK(night.strip()["run_id"].is_null());
        night.run.daemon = DaemonState::starting;
        CHECK(night.strip()["text"] == "a run is being started");
        night.start_run();
        night.run.waiting = true;
        night.run.start.reset();
        night.run.interrupted = {{"night-1", "/data/night-1", ""}};
        CHECK(night.strip()["state"] == "not_recording");
        CHECK(night.strip()["text"] ==
              "run night-3 waits for the start that was asked for; run night-1 was interrupted earlier");
        CHECK(night.strip()["run_id"] == "night-3");
        night.run.daemon = DaemonState::stopping;
        CHECK(contains(night.strip()["text"], "run night-3 is being given up;"));
    }
    {
        Night night(26 * 3600);
        CHECK(night.strip()["state"] == "no_data");
        CHECK(night.strip()["text"] == "no frames have arrived for 1 d 02 h, since 2026-11-24 02:14:07 UTC");
        night.reading.arrival.any = false;
        CHECK(night.strip()["text"] ==
              "no frames have arrived yet; the daemon started at 2026-11-24 02:14:07 UTC");
    }
}

TEST_CASE("recording: an interrupted run shows whether frames arrive or not, with a command for a shell") {
    for (const double quiet_s : {0.3, 65.0}) {
        Night night(quiet_s);
        night.run.interrupted = {{"night-1", "/data/night-1", ""}};
        const json strip = night.strip();
        CHECK(strip["state"] == "interrupted");
        CHECK(strip["word"] == "INTERRUPTED");
        CHECK(strip["run_id"] == "night-1");
        CHECK(strip["command"] == "petlm recover /data/night-1 -o night-1.recovered");
        CHECK(strip["text"] ==
              "run night-1 ended without being stopped: save it with `petlm recover /data/night-1 -o "
              "night-1.recovered`, then `petctl acknowledge night-1`");
        night.run.interrupted.push_back({"night-2", "/my data/it's", ""});
        CHECK(night.strip()["command"] == R"(petlm recover '/my data/it'\''s' -o night-2.recovered)");
        CHECK(night.strip()["text"].get<std::string>().starts_with("run night-2 (and 1 before it) ended"));
        night.run.interrupted.clear();
        CHECK(night.strip()["state"] != "interrupted");
    }
}
