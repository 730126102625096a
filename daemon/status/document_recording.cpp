#include "daemon/status/document_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "daemon/status/problems.hpp"
#include "daemon/status/status.hpp"
#include "daemon/system/quantity_text.hpp"
#include "daemon/system/utc.hpp"

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
    return run.current && run.start && run.daemon != DaemonState::failed;
}

/// The part of the daemon that stands still, if any does.
const StageState* stalled(const Reading& now) {
    const auto found = std::find_if(now.stages.begin(), now.stages.end(),
                                    [](const StageState& s) { return s.activity == Activity::stalled; });
    return found == now.stages.end() ? nullptr : &*found;
}

/// "; run mouse-7 was interrupted earlier"
std::string earlier_text(const RunState& run) {
    if (run.interrupted.empty()) return "";
    if (run.interrupted.size() > 1)
        return fmt::format("; {} earlier runs were interrupted", run.interrupted.size());
    return fmt::format("; run {} was interrupted earlier", run.interrupted.back().id);
}

std::chrono::system_clock::time_point utc_now(const Observation& seen) {
    const auto quiet = seen.now->taken - seen.now->arrival.latest;
    return seen.now->arrival.latest_utc +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(quiet);
}

/// "; the last run, night-3, failed at 03:12:05 UTC: No space left on device"
std::string ended_text(const Observation& seen) {
    const std::optional<EndedRun>& last = seen.run->ended;
    if (!last) return "";
    std::string text = "; the last run, " + last->id + (last->failed ? ", failed" : ", ended");
    if (!last->failed && last->verdict == "bad") text += " with bad data (`petctl runs` says why)";
    if (last->stopped) text += " at " + clock_text(*last->stopped, utc_now(seen));
    return last->reason.empty() ? text : text + ": " + last->reason;
}

/// The state of the current run as a clause; empty without a run.
std::string run_text(const RunState& run) {
    if (run.daemon == DaemonState::starting) return "a run is being started";
    if (!run.current) return "";
    const std::string name = "run " + run.current->id;
    if (run.daemon == DaemonState::stopping && !run.start) return name + " is being given up";
    if (run.waiting) return name + " waits for the start that was asked for";
    return name + (run.start ? " is in progress" : " is being started");
}

/// Adds what is known of the run in progress.
void add_run(json& strip, const Observation& seen) {
    const RunDescription& run = *seen.run->current;
    const AcquisitionSnapshot& a = *seen.now->acquisition;
    strip["run_id"] = run.id;
    strip["note"] = run.note;
    const std::chrono::duration<double> elapsed =
        seen.now->taken - seen.run->data_since.value_or(seen.now->taken);
    strip["elapsed_s"] = std::max(0.0, elapsed.count());
    strip["requested_s"] = number_if(run.duration_s.has_value(), run.duration_s.value_or(0));
    if (!run.duration_s && run.stop_ticks && a.run_start && *run.stop_ticks > *a.run_start) {
        strip["requested_s"] =
            static_cast<double>(*run.stop_ticks - *a.run_start) * seen.scanner().tick_ps * 1e-12;
    }
    if (a.run && seen.configuration().listmode.write_coincidences)
        strip["prompts"] = a.run->pairs.prompts_found;
    if (seen.now->run) strip["bytes"] = seen.now->run->bytes();
    const auto left = seen.now->disk.time_left_s();
    strip["disk_time_left_s"] = number_if(left.has_value(), left.value_or(0));
}

/// What arrives although no frame can be used; empty: nothing does.
std::string useless_text(const Observation& seen) {
    if (invalid_frames_arrived(seen) > 0)
        return "datagrams arrive, but none of their frames is valid: check frame.head_marker, "
               "frame.tail_marker, the byte order of the frames and the BDMs of the sources (`petctl "
               "doctor`)";
    const Ledger& now = seen.now->acquisition->total;
    const Ledger& before = seen.before->acquisition->total;
    if (now.datagrams.malformed > before.datagrams.malformed)
        return "datagrams arrive, but they are malformed: check receive.framing, and header and size of the "
               "datagrams (`petctl doctor`)";
    if (now.datagrams.unknown_source > before.datagrams.unknown_source)
        return "datagrams arrive, but only from senders that are not listed: `petctl sources` shows them";
    if (now.tags.received > before.tags.received)
        return "only tag frames arrive: do the boards send their singles with frame.tag_marker?";
    if (now.datagrams.frames > before.datagrams.frames)
        return "datagrams arrive, but the times of their frames make no sense: check the byte order and the "
               "unit of the time (`petctl doctor`)";
    return "";
}

json no_data(const Observation& seen) {
    const LastFrames& arrival = seen.now->arrival;
    const std::chrono::duration<double> quiet = seen.now->taken - arrival.latest;
    std::string text = run_text(*seen.run);
    if (!text.empty()) text += ", but ";
    const std::string useless = useless_text(seen);
    text += !useless.empty() ? useless
            : arrival.any
                ? fmt::format("no frames have arrived for {}, since {}", duration_text(quiet.count()),
                              clock_text(arrival.latest_utc, utc_now(seen)))
                : fmt::format("no frames have arrived yet; the daemon started at {}",
                              clock_text(arrival.latest_utc, utc_now(seen)));
    if (!seen.run->current) text += ended_text(seen);
    json strip = strip_of("no_data", "NO DATA", std::move(text));
    if (in_progress(*seen.run)) add_run(strip, seen);
    strip["since_utc"] = utc_text(arrival.latest_utc);
    return strip;
}

/// Why frames that arrive have no time that counts.
std::string unknown_time_text(const Observation& seen) {
    const auto& sources = seen.now->acquisition->sources.sources;
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
        if (sources[i].rate && sources[i].state != SourceState::silent)
            return "their times are wrong: " +
                   rate_problem(i, source_name(seen, sources[i]), *sources[i].rate).what;
    }
    return "the time of their boards is not known yet";
}

/// A run in progress has had no data yet.
json waiting_for_data(const Observation& seen) {
    json strip = strip_of("waiting_for_data", "WAITING FOR DATA", "");
    add_run(strip, seen);
    const std::chrono::duration<double> quiet = seen.now->taken - seen.now->arrival.latest;
    std::string text = "run " + seen.run->current->id + " begins with its first data: ";
    const std::string useless = silent(*seen.now) ? useless_text(seen) : "";
    text += !useless.empty()    ? useless
            : silent(*seen.now) ? "no frames have arrived for " + duration_text(quiet.count())
                                : "frames arrive, but " + unknown_time_text(seen);
    if (!strip["requested_s"].is_null())
        text += "; its " + duration_text(strip["requested_s"].get<double>()) + " count from then";
    strip["text"] = text;
    return strip;
}

/// " at 1.2 MB/s": whether the files of the run grow.
std::string growth_text(const Observation& seen, const json& strip) {
    const double rate = seen.now->disk.write_bytes_per_s;
    if (rate > 0) return " at " + scaled_text(rate, "B/s");
    constexpr std::chrono::duration<double> known_after = 2 * WriteRate::over;
    return strip["elapsed_s"] > known_after.count() ? ", not growing" : "";
}

/// "run mouse-7: 12 min 05 s of 1 h 00 min, 1.235 M prompts, 52.4 MB at 1 MB/s, disk full in 11 h"
json recording(const Observation& seen) {
    json strip = strip_of("recording", "RECORDING", "");
    add_run(strip, seen);
    const auto number = [&](const char* key) { return strip[key].get<double>(); };
    std::string text = "run " + seen.run->current->id + ": ";
    if (seen.run->daemon == DaemonState::stopping) text += "stopping, ";
    text += duration_text(number("elapsed_s"));
    if (!strip["requested_s"].is_null()) text += " of " + duration_text(number("requested_s"));
    const auto say = [&](const std::string& part) { text += ", " + part; };
    if (!strip["prompts"].is_null())
        say(scaled_text(number("prompts"), "") + (number("prompts") == 1 ? " prompt" : " prompts"));
    if (!strip["bytes"].is_null()) say(scaled_text(number("bytes"), "B") + growth_text(seen, strip));
    if (!strip["disk_time_left_s"].is_null())
        say("disk full in " + duration_text(number("disk_time_left_s")));
    strip["text"] = text;
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
    std::string text = run_text(*seen.run);
    if (text.empty()) text = "frames arrive, no run is in progress" + ended_text(seen);
    if (seen.run->daemon == DaemonState::failed) text = "the pipeline has failed, the daemon stops";
    json strip = strip_of("not_recording", "NOT RECORDING", std::move(text));
    if (!seen.run->current) return strip;
    strip["run_id"] = seen.run->current->id;
    strip["note"] = seen.run->current->note;
    return strip;
}

/// No run is in progress, and the last one failed: until the next one starts.
json failed(const Observation& seen) {
    json strip = silent(*seen.now) ? no_data(seen) : not_recording(seen);
    strip["state"] = "failed";
    strip["word"] = "RUN FAILED";
    strip["run_id"] = seen.run->ended->id;
    return strip;
}

/// A run is in progress, but its data go nowhere.
json held_up(const Observation& seen, const StageState& stage) {
    json strip = strip_of("not_recording", "NOT RECORDING",
                          fmt::format("{}, but its {} has made no progress for {}", run_text(*seen.run),
                                      stage.name, duration_text(stage.stands_s)));
    add_run(strip, seen);
    return strip;
}

}  // namespace

bool silent(const Reading& now) {
    return !now.arrival.any || now.taken - now.arrival.latest > no_data_after;
}

// In the order of what somebody has to know first in the morning. A run in progress counts only while frames
// arrive for it and its data get on.
json make_recording(const Observation& seen) {
    const RunState& run = *seen.run;
    if (run.current) {
        const StageState* const stage = in_progress(run) ? stalled(*seen.now) : nullptr;
        json strip =
            stage != nullptr ? held_up(seen, *stage)
            : run.daemon == DaemonState::running && in_progress(run) && !seen.now->acquisition->run_start
                ? waiting_for_data(seen)
            : silent(*seen.now) ? no_data(seen)
            : in_progress(run)  ? recording(seen)
                                : not_recording(seen);
        strip["text"] = strip["text"].get<std::string>() + earlier_text(run);
        return strip;
    }
    if (!run.interrupted.empty()) return interrupted(seen);
    if (run.ended && run.ended->failed && run.daemon != DaemonState::failed) return failed(seen);
    return silent(*seen.now) ? no_data(seen) : not_recording(seen);
}

}  // namespace petacq::daemon
