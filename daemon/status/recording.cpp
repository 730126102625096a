// `recording` of the status document: are data being recorded now, and if not, why?
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "daemon/host/quantity_text.hpp"
#include "daemon/host/utc.hpp"
#include "daemon/status/status.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

json strip_of(const char* state, const char* word, std::string text) {
    json strip = {{"state", state}, {"word", word}, {"text", std::move(text)}};
    for (const char* key : {"run_id", "note", "elapsed_s", "requested_s", "prompts", "bytes",
                            "disk_time_left_s", "since_utc", "command"})
        strip[key] = nullptr;
    return strip;
}

/// The time on the clock for people; the date if it is not today's.
std::string clock_text(std::chrono::system_clock::time_point then,
                       std::chrono::system_clock::time_point now) {
    const bool today = utc_text(then, "%F") == utc_text(now, "%F");
    return utc_text(then, today ? "%H:%M:%S UTC" : "%F %H:%M:%S UTC");
}

bool in_progress(const RunState& run) {
    return run.current && !run.waiting && run.daemon != DaemonState::failed;
}

bool silent(const Reading& now) {
    return !now.arrival.any || now.taken - now.arrival.latest > no_data_after;
}

/// "; run mouse-7 was interrupted earlier"
std::string earlier_text(const RunState& run) {
    if (run.interrupted.empty()) return "";
    if (run.interrupted.size() > 1)
        return fmt::format("; {} earlier runs were interrupted", run.interrupted.size());
    return fmt::format("; run {} was interrupted earlier", run.interrupted.back().id);
}

json no_data(const Observation& seen) {
    const Arrival& arrival = seen.now->arrival;
    const auto quiet = seen.now->taken - arrival.latest;
    const auto now =
        arrival.latest_utc + std::chrono::duration_cast<std::chrono::system_clock::duration>(quiet);
    std::string text = in_progress(*seen.run) ? "run " + seen.run->current->id + " is in progress, but " : "";
    text += fmt::format("no frames have arrived for {}, since {}{}",
                        duration_text(std::chrono::duration<double>(quiet).count()),
                        arrival.any ? "" : "the daemon started at ", clock_text(arrival.latest_utc, now));
    json strip = strip_of("no_data", "NO DATA", std::move(text));
    strip["since_utc"] = utc_text(arrival.latest_utc);
    return strip;
}

/// Adds what is known of the run in progress.
void add_run(json& strip, const Observation& seen) {
    const RunDescription& run = *seen.run->current;
    const AcquisitionSnapshot& a = *seen.now->acquisition;
    strip["run_id"] = run.id;
    strip["note"] = run.note;
    if (seen.run->start) {
        const std::chrono::duration<double> elapsed = seen.now->taken - seen.run->start->taken;
        strip["elapsed_s"] = std::max(0.0, elapsed.count());
    }
    strip["requested_s"] = number_if(run.duration_s.has_value(), run.duration_s.value_or(0));
    if (!run.duration_s && run.stop_ticks && a.run && *run.stop_ticks > a.run_start) {
        strip["requested_s"] =
            static_cast<double>(*run.stop_ticks - a.run_start) * seen.scanner().tick_ps * 1e-12;
    }
    if (a.run && seen.configuration().listmode.write_coincidences)
        strip["prompts"] = a.run->pairs.prompts_found;
    if (seen.now->run) strip["bytes"] = seen.now->run->bytes();
    const auto left = seen.now->disk.time_left_s();
    strip["disk_time_left_s"] = number_if(left.has_value(), left.value_or(0));
}

/// "run mouse-7: 12 min 05 s of 1 h 00 min, 1.235 M prompts, 52.4 MB, disk full in 11 h 20 min"
json recording(const Observation& seen) {
    json strip = strip_of("recording", "RECORDING", "");
    add_run(strip, seen);
    const auto number = [&](const char* key) { return strip[key].get<double>(); };
    std::string text = "run " + seen.run->current->id;
    const char* separator = ": ";
    const auto say = [&](const std::string& part) {
        text += separator + part;
        separator = ", ";
    };
    if (seen.run->daemon == DaemonState::stopping) say("stopping");
    if (!strip["elapsed_s"].is_null()) {
        std::string time = duration_text(number("elapsed_s"));
        if (!strip["requested_s"].is_null()) time += " of " + duration_text(number("requested_s"));
        say(time);
    }
    if (!strip["prompts"].is_null())
        say(scaled_text(number("prompts"), "") + (number("prompts") == 1 ? " prompt" : " prompts"));
    if (!strip["bytes"].is_null()) say(scaled_text(number("bytes"), "B"));
    if (!strip["disk_time_left_s"].is_null())
        say("disk full in " + duration_text(number("disk_time_left_s")));
    strip["text"] = text + earlier_text(*seen.run);
    return strip;
}

json interrupted(const Observation& seen) {
    const InterruptedRun& latest = seen.run->interrupted.back();
    const std::size_t others = seen.run->interrupted.size() - 1;
    const std::string command = recovery_command(latest);
    json strip = strip_of(
        "interrupted", "INTERRUPTED",
        fmt::format("run {}{} ended without being stopped: save it with `{}`, then `petctl acknowledge {}`",
                    latest.id, others > 0 ? fmt::format(" (and {} before it)", others) : "", command,
                    latest.id));
    strip["run_id"] = latest.id;
    strip["command"] = command;
    return strip;
}

json not_recording(const Observation& seen) {
    std::string text = "frames arrive, no run is in progress";
    if (seen.run->daemon == DaemonState::failed) text = "the pipeline has failed, the daemon stops";
    if (seen.run->daemon == DaemonState::starting) text = "a run is being started";
    json strip = strip_of("not_recording", "NOT RECORDING", text);
    if (seen.run->current && seen.run->waiting) {
        strip["run_id"] = seen.run->current->id;
        strip["note"] = seen.run->current->note;
        strip["text"] = "run " + seen.run->current->id + " waits for the start that was asked for";
    }
    return strip;
}

}  // namespace

// In the order of what somebody has to know first in the morning. A run in progress counts only while frames
// arrive for it.
json make_recording(const Observation& seen) {
    const RunState& run = *seen.run;
    if (in_progress(run)) {
        if (!silent(*seen.now)) return recording(seen);
        json strip = no_data(seen);
        add_run(strip, seen);
        return strip;
    }
    if (!run.interrupted.empty()) return interrupted(seen);
    return silent(*seen.now) ? no_data(seen) : not_recording(seen);
}

}  // namespace petacq::daemon
