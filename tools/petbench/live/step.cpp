#include "tools/petbench/live/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/seconds_since.hpp"
#include "tools/petbench/base/daemon_process.hpp"
#include "tools/petbench/live/faults.hpp"
#include "tools/petbench/live/tap_reader.hpp"

namespace petacq::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::optional<double> number(const json& value) {
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

void judge(LiveStep& step, double seconds, const json& run, std::uint64_t given_up_slices) {
    auto& faults = step.faults;
    if (step.sent.seconds > seconds * 1.01 + 0.01)
        faults.push_back(fmt::format("the sender ended at {:.2f} M frames/s", step.reached() * 1e-6));
    if (step.frames != step.sent.frames)
        faults.push_back(fmt::format("{} frames sent, {} received", step.sent.frames, step.frames));
    for (std::string& fault : faults_of(run, given_up_slices, Losses::none))
        faults.push_back(std::move(fault));
}

/// Reads what the run has left, and judges it.
void take_results(LiveStep& step, double seconds, const fs::path& directory, std::uint64_t given_up_slices) {
    std::ifstream file(directory / "run.json");
    const json run = json::parse(file);
    if (!run.contains("ledger")) {
        step.faults.push_back("the run has no ledger: " + run.value("stop_reason", std::string("no reason")));
        return;
    }
    step.frames = run["ledger"]["frames"]["received"].get<std::uint64_t>();
    step.prompts = run["ledger"]["pairs"]["prompts_found"].get<std::uint64_t>();
    step.delayeds = run["ledger"]["pairs"]["delayeds_found"].get<std::uint64_t>();
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (!entry.is_regular_file()) continue;
        step.run_bytes += entry.file_size();
        if (entry.path().extension() == ".plm") step.listmode_bytes += entry.file_size();
    }
    judge(step, seconds, run, given_up_slices);
}

void take_waits(LiveStep& step, const json& status) {
    for (const json& stage : status["stages"])
        if (stage["name"] == "pipeline") step.pipeline_busy = stage["utilisation"].get<double>();
    const json& queues = status["queues"];
    step.writer_stalls = queues["writer_stalls"].get<std::uint64_t>();
    step.writer_high_water = queues["writer_high_water"].get<std::uint64_t>();
    step.free_batches_low_water = queues["free_batches_low_water"].get<std::uint64_t>();
}

void measure(LiveStep& step, DaemonProcess& daemon, LiveStream& stream, double seconds,
             const fs::path& directory) {
    const std::vector<std::uint16_t> ports = daemon.ports();
    daemon.call("start", {{"run", directory.filename().string()}});

    const std::vector<ThreadTime> before = thread_times(daemon.pid());
    const auto started = SendClock::now();
    const Phase phase{&stream, step.rate, seconds};
    step.sent = send({&phase, 1}, ports, started + every_thread_has_begun, Behind::catch_up);
    const double watched = config::seconds_since(started);
    step.threads = thread_groups(before, thread_times(daemon.pid()), watched);
    take_waits(step, daemon.call("status"));
    const auto processed = daemon.call("status")["total"]["frames"]["received"].get<std::uint64_t>();
    step.behind = step.sent.frames - std::min(processed, step.sent.frames);

    wait_until_processed(daemon, step.sent.datagrams);
    const json status = daemon.call("status");
    step.backend = status["backend"].get<std::string>();
    step.p50_ms = number(status["latency"]["p50_ms"]);
    step.p99_ms = number(status["latency"]["p99_ms"]);
    daemon.call("stop");
    const auto given_up = daemon.call("status")["queues"]["given_up_slices"].get<std::uint64_t>();
    if (const json& tap = status["tap"]; tap.is_object()) {
        step.tap_sent = tap["sent"].get<std::uint64_t>();
        step.tap_dropped = tap["dropped"].get<std::uint64_t>();
    }
    step.memory_bytes = peak_memory_bytes(daemon.pid());
    take_results(step, seconds, directory, given_up);
}

}  // namespace

LiveStep run_step(const LiveSite& site, const json& configuration, LiveStream& stream,
                  const StepOptions& options) {
    LiveStep step;
    step.rate = options.rate;
    const fs::path directory = site.data / "live";
    {
        DaemonProcess daemon(configuration, site.directory, site.program);
        std::optional<TapReader> tap;
        try {
            if (options.tap > 0) tap.emplace(site.directory / LiveSite::tap, options.tap);
            measure(step, daemon, stream, options.seconds, directory);
        } catch (const daemon::ControlUnavailable& error) {  // its pipeline failed, or it crashed
            step.faults.emplace_back(error.what());
        }
    }
    fs::remove_all(directory);
    return step;
}

}  // namespace petacq::bench
