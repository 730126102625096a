#include "daemon/http_metrics.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/http_content.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;
using Label = std::pair<std::string_view, std::string>;
using Labels = std::initializer_list<Label>;

/// Families one after the other; one without a sample leaves no trace.
class Exposition {
  public:
    void family(const char* name, const char* type, const char* help) {
        name_ = name;
        type_ = type;
        help_ = help;
        announced_ = false;
    }

    /// Integers exactly; what is not a number is not known, and left out.
    void sample(const json& value, Labels labels = {}, double scale = 1) {
        if (value.is_number_integer() && scale == 1) return write(value.dump(), labels);
        if (value.is_boolean()) return write(value.get<bool>() ? "1" : "0", labels);
        if (!value.is_number()) return;
        const double number = value.get<double>() * scale;
        if (std::isfinite(number)) write(fmt::format("{}", number), labels);
    }

    std::string take() { return fmt::to_string(out_); }

  private:
    void write(std::string_view value, Labels labels) {
        auto out = std::back_inserter(out_);
        if (!announced_) fmt::format_to(out, "# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help_, type_);
        announced_ = true;
        fmt::format_to(out, "{}", name_);
        char before = '{';
        for (const Label& label : labels) {
            fmt::format_to(out, "{}{}=\"{}\"", before, label.first, escaped(label.second));
            before = ',';
        }
        fmt::format_to(out, "{} {}\n", before == ',' ? "}" : "", value);
    }

    static std::string escaped(const std::string& text) {
        std::string result;
        for (const char c : text) {
            if (c == '\\' || c == '"') result += '\\';
            if (c == '\n') {
                result += "\\n";
            } else {
                result += c;
            }
        }
        return result;
    }

    fmt::memory_buffer out_;
    const char* name_ = "";
    const char* type_ = "";
    const char* help_ = "";
    bool announced_ = false;
};

const json& at(const json& document, const char* pointer) {
    static const json nothing;
    const json::json_pointer path(pointer);
    return document.contains(path) ? document.at(path) : nothing;
}

std::string text_at(const json& document, const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || found->is_null()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
}

struct Scalar {
    const char* pointer;
    const char* name;
    const char* type;
    const char* help;
    double scale = 1;
};

constexpr const char* counter = "counter";
constexpr const char* gauge = "gauge";

// `lost` is no counter: a late datagram takes it back.
constexpr std::array scalars{
    Scalar{"/uptime_s", "petacqd_uptime_seconds", gauge, "Time since the daemon started."},
    Scalar{"/watermark_s", "petacqd_watermark_seconds", gauge,
           "Detector time below which everything is decided."},
    Scalar{"/total/datagrams/received", "petacqd_datagrams_received_total", counter,
           "Datagrams taken from the sockets."},
    Scalar{"/total/datagrams/accepted", "petacqd_datagrams_accepted_total", counter,
           "Datagrams whose frames went to the pipeline."},
    Scalar{"/total/datagrams/reordered", "petacqd_datagrams_reordered_total", counter,
           "Accepted datagrams that came after one with a higher sequence number."},
    Scalar{"/total/datagrams/stray", "petacqd_datagrams_stray_total", counter,
           "Accepted datagrams far from the sequence of their source."},
    Scalar{"/total/datagrams/dropped_kernel", "petacqd_datagrams_dropped_kernel_total", counter,
           "Datagrams dropped by the kernel, socket queue full."},
    Scalar{"/total/datagrams/discarded_backlog", "petacqd_datagrams_discarded_backlog_total", counter,
           "Datagrams that came before the daemon was ready, in a socket of systemd's."},
    Scalar{"/total/datagrams/restarted", "petacqd_source_restarts_total", counter,
           "Times that a source began a fresh sequence."},
    Scalar{"/total/datagrams/lost", "petacqd_datagrams_lost", gauge,
           "Datagrams missing in the sequences; goes back when a late one comes."},
    Scalar{"/total/frames/received", "petacqd_frames_received_total", counter,
           "Frames that the pipeline took."},
    Scalar{"/total/frames/accepted", "petacqd_frames_accepted_total", counter,
           "Frames that became singles inside the energy window."},
    Scalar{"/total/singles/decided", "petacqd_singles_decided_total", counter,
           "Singles that were given their fate."},
    Scalar{"/total/singles/prompts", "petacqd_prompts_total", counter, "Prompt coincidences found."},
    Scalar{"/total/singles/delayeds", "petacqd_delayeds_total", counter, "Delayed coincidences found."},
    Scalar{"/ledger/closed", "petacqd_ledger_closed", gauge,
           "1 when every identity of the ledger holds: of the run in progress, else of the last one."},
    Scalar{"/ledger/pairs/written", "petacqd_pairs_written_total", counter,
           "Coincidences of the run handed to the disk."},
    Scalar{"/ledger/pairs/write_failed", "petacqd_pairs_write_failed_total", counter,
           "Coincidences of the run that could not be written."},
    Scalar{"/ledger/pairs/in_queue", "petacqd_pairs_queued", gauge,
           "Coincidences of the run on their way to the disk."},
    Scalar{"/rates/bytes_per_s", "petacqd_receive_bytes_per_second", gauge, "UDP payload received."},
    Scalar{"/rates/singles_raw_per_s", "petacqd_raw_singles_per_second", gauge,
           "Singles inside a crystal, whatever their energy."},
    Scalar{"/rates/net_trues_per_s", "petacqd_net_trues_per_second", gauge, "Prompts less delayeds."},
    Scalar{"/rates/multiples_per_s", "petacqd_multiples_per_second", gauge,
           "Singles in multiples that were dropped."},
    Scalar{"/rates/expected_randoms_per_s", "petacqd_expected_randoms_per_second", gauge,
           "Random coincidences expected from the singles rates."},
    Scalar{"/rates/necr_per_s", "petacqd_necr_per_second", gauge,
           "Noise equivalent count rate, an estimate with an assumed scatter fraction."},
    Scalar{"/rates/randoms_fraction", "petacqd_randoms_ratio", gauge, "Delayeds to prompts."},
    Scalar{"/rates/lost_fraction", "petacqd_lost_ratio", gauge,
           "Lost datagrams to those sent, over about the last second."},
    Scalar{"/rates/busy_fraction", "petacqd_acquisition_busy_ratio", gauge,
           "Share of its time that the acquisition thread works."},
    Scalar{"/latency/p50_ms", "petacqd_write_latency_median_seconds", gauge,
           "From the arrival of a datagram until its coincidences are handed to the kernel: median.", 1e-3},
    Scalar{"/latency/p99_ms", "petacqd_write_latency_p99_seconds", gauge,
           "From the arrival of a datagram until its coincidences are handed to the kernel: 99th percentile.",
           1e-3},
    Scalar{"/latency/max_ms", "petacqd_write_latency_max_seconds", gauge,
           "From the arrival of a datagram until its coincidences are handed to the kernel: largest.", 1e-3},
    Scalar{"/disk/free_bytes", "petacqd_disk_free_bytes", gauge, "Free on the file system of data_dir."},
    Scalar{"/disk/total_bytes", "petacqd_disk_size_bytes", gauge, "Size of the file system of data_dir."},
    Scalar{"/disk/write_bytes_per_s", "petacqd_disk_write_bytes_per_second", gauge,
           "List-mode and raw capture written."},
    Scalar{"/disk/time_left_s", "petacqd_disk_time_left_seconds", gauge,
           "Until the disk is full at the present rate."},
    Scalar{"/dead_time/fraction", "petacqd_dead_time_ratio", gauge,
           "Dead time of the detector, an estimate."},
    Scalar{"/queues/free_batches", "petacqd_receive_batches_free", gauge, "Receive batches that are free."},
    Scalar{"/queues/free_batches_low_water", "petacqd_receive_batches_free_low_water", gauge,
           "Fewest receive batches that were free since the latest run began."},
    Scalar{"/queues/batches", "petacqd_receive_batches", gauge, "Receive batches in the pool."},
    Scalar{"/queues/pending_singles", "petacqd_singles_pending", gauge,
           "Accepted singles that wait for the watermark."},
    Scalar{"/queues/pending_singles_high_water", "petacqd_singles_pending_high_water", gauge,
           "Most singles that waited for the watermark since the latest run began."},
    Scalar{"/queues/given_up_slices", "petacqd_given_up_slices_total", counter,
           "Slices for which slow sources were not waited for, to save memory."},
    Scalar{"/queues/writer_blocks", "petacqd_writer_blocks_queued", gauge,
           "List-mode blocks that wait for the disk."},
    Scalar{"/queues/writer_high_water", "petacqd_writer_blocks_queued_high_water", gauge,
           "Most list-mode blocks of the run that waited for the disk."},
    Scalar{"/queues/writer_stalls", "petacqd_writer_stalls_total", counter,
           "Times in this run that every list-mode block waited for the disk."},
    Scalar{"/queues/capture_batches", "petacqd_capture_batches_queued", gauge,
           "Receive batches that wait for the disk of the raw capture."},
    Scalar{"/queues/capture_high_water", "petacqd_capture_batches_queued_high_water", gauge,
           "Most receive batches of the run that waited for the disk of the raw capture."},
    Scalar{"/run/capture/datagrams_written", "petacqd_capture_datagrams_written_total", counter,
           "Datagrams of the run in its raw capture."},
    Scalar{"/run/capture/datagrams_dropped", "petacqd_capture_datagrams_dropped_total", counter,
           "Datagrams of the run missing from its raw capture."},
    Scalar{"/run/capture/bytes", "petacqd_capture_written_bytes_total", counter,
           "Size of the raw capture of the run."},
};

/// One family whose samples differ in the label `reason`: keys of one object.
struct ByReason {
    const char* pointer;
    const char* name;
    const char* help;
    std::initializer_list<const char*> keys;
};

const std::initializer_list<ByReason> by_reason{
    {"/total/datagrams",
     "petacqd_datagrams_rejected_total",
     "Datagrams received and not used.",
     {"duplicate", "malformed", "unknown_source", "too_many_sources", "dropped_no_buffer"}},
    {"/total/frames",
     "petacqd_frames_rejected_total",
     "Frames that did not become singles inside the energy window.",
     {"bad_marker", "bad_address", "outside_crystal", "time_jump", "bad_time", "late", "below_window",
      "above_window"}},
    {"/total/singles",
     "petacqd_singles_unused_total",
     "Singles that are in no coincidence.",
     {"unpaired", "same_crystal", "geometry", "in_dropped_multiples", "in_oversize_multiples",
      "unused_in_multiples"}},
    {"/queues",
     "petacqd_log_messages_lost_total",
     "Log messages given up.",
     {"log_overrun", "log_unwritten"}},
};

void state_set(Exposition& out, const std::string& now, std::initializer_list<const char*> states) {
    for (const char* state : states)
        out.sample(now == state, {{"state", state}});
}

void write_states(Exposition& out, const json& status) {
    out.family("petacqd_build_info", gauge, "Version, scanner, and what computes.");
    out.sample(1, {{"version", text_at(status, "version")},
                   {"scanner", text_at(status, "scanner")},
                   {"backend", text_at(status, "backend")}});
    out.family("petacqd_state", gauge, "1 for the state that the daemon is in.");
    state_set(out, text_at(status, "state"), {"idle", "running", "stopping", "failed"});
    if (const json& health = at(status, "/health"); health.is_object()) {
        out.family("petacqd_health", gauge, "1 for the health that the daemon is in.");
        state_set(out, text_at(health, "state"), {"ok", "degraded", "failed"});
        out.family("petacqd_health_reasons", gauge, "What is wrong: reasons of that kind.");
        std::map<std::pair<std::string, std::string>, int> reasons;
        for (const json& reason : at(health, "/reasons")) {
            if (reason.is_object()) ++reasons[{text_at(reason, "code"), text_at(reason, "severity")}];
        }
        for (const auto& [kind, count] : reasons)
            out.sample(count, {{"reason", kind.first}, {"severity", kind.second}});
    }
    if (const json& capture = at(status, "/run/capture"); capture.is_object()) {
        out.family("petacqd_capture_failed", gauge, "1 when the raw capture has ended early.");
        out.sample(capture.contains("failure") && !capture.at("failure").is_null());
    }
    out.family("petacqd_run_info", gauge, "The run in progress.");
    if (at(status, "/run").is_object()) out.sample(1, {{"run", text_at(at(status, "/run"), "id")}});
}

/// One sample of each family for each item of an array that `label_of` can tell from the others.
template <class LabelOf>
void write_items(Exposition& out, const json& items, const char* label, LabelOf label_of,
                 std::initializer_list<Scalar> families) {
    if (!items.is_array()) return;
    for (const Scalar& family : families) {
        out.family(family.name, family.type, family.help);
        std::set<std::string> seen;
        for (const json& item : items) {
            const std::string name = label_of(item);
            if (seen.insert(name).second) out.sample(at(item, family.pointer), {{label, name}}, family.scale);
        }
    }
}

void write_sources(Exposition& out, const json& status) {
    const auto name = [](const json& source) {
        const std::string id = text_at(source, "id");
        return id.empty() ? text_at(source, "address") : id;
    };
    const json& sources = at(status, "/sources");
    write_items(
        out, sources, "source", name,
        {{"/datagrams", "petacqd_source_datagrams_total", counter, "Datagrams of a source."},
         {"/frames", "petacqd_source_frames_total", counter, "Frames of a source."},
         {"/lost", "petacqd_source_datagrams_lost", gauge,
          "Datagrams of a source that are missing; goes back when a late one comes."},
         {"/lost_fraction", "petacqd_source_lost_ratio", gauge,
          "Lost datagrams of a source to those it sent, over about the last second."},
         {"/duplicate", "petacqd_source_duplicates_total", counter, "Datagrams of a source that came twice."},
         {"/skew_us", "petacqd_source_skew_seconds", gauge,
          "Detector time of a source less the time that the sources agree on.", 1e-6},
         {"/last_seen_s", "petacqd_source_last_seen_seconds", gauge,
          "Since the latest datagram of a source, heartbeats included."}});
    out.family("petacqd_source_state", gauge, "1 for the state that a source is in.");
    if (!sources.is_array()) return;
    std::set<std::string> seen;
    for (const json& source : sources) {
        if (!seen.insert(name(source)).second) continue;
        for (const char* state : {"active", "silent", "lagging", "leading", "ended", "jumping"})
            out.sample(text_at(source, "state") == state, {{"source", name(source)}, {"state", state}});
    }
}

void write_modules(Exposition& out, const json& status) {
    constexpr double ev_per_kev = 1e3;
    write_items(out, at(status, "/modules"), "module", [](const json& m) { return text_at(m, "bdm"); },
                {{"/singles_per_s", "petacqd_module_singles_per_second", gauge,
                  "Singles of a module, whatever their energy."},
                 {"/mean_keV", "petacqd_module_energy_mean_electronvolts", gauge,
                  "Mean energy of the singles of a module.", ev_per_kev},
                 {"/peak_keV", "petacqd_module_energy_peak_electronvolts", gauge,
                  "Most frequent energy of the singles of a module.", ev_per_kev},
                 {"/temperature_C", "petacqd_module_temperature_celsius", gauge, "Temperature of a module."},
                 {"/dead_time_fraction", "petacqd_module_dead_time_ratio", gauge,
                  "Dead time of a module, an estimate."},
                 {"/expected_randoms_per_s", "petacqd_module_expected_randoms_per_second", gauge,
                  "Random coincidences of a module expected from the singles rates."}});
}

}  // namespace

std::string daemon_metrics(const json& status) {
    Exposition out;
    if (!status.is_object()) return "";
    write_states(out, status);
    for (const Scalar& s : scalars) {
        out.family(s.name, s.type, s.help);
        out.sample(at(status, s.pointer), {}, s.scale);
    }
    for (const ByReason& family : by_reason) {
        out.family(family.name, counter, family.help);
        for (const char* key : family.keys) {
            const json& section = at(status, family.pointer);
            if (section.contains(key)) out.sample(section.at(key), {{"reason", key}});
        }
    }
    out.family("petacqd_memory_bytes", gauge, "Memory set aside.");
    for (const auto& [key, use] : std::initializer_list<std::pair<const char*, const char*>>{
             {"/memory/batch_pool_bytes", "batch_pool"},
             {"/memory/pipeline_bytes", "pipeline"},
             {"/memory/block_buffer_bytes", "block_buffers"}})
        out.sample(at(status, key), {{"use", use}});
    const auto stage_name = [](const json& stage) { return text_at(stage, "name"); };
    write_items(out, at(status, "/stages"), "stage", stage_name,
                {{"/utilisation", "petacqd_stage_utilisation_ratio", gauge,
                  "Share of its time that a stage works."}});
    out.family("petacqd_stage_stalled", gauge, "1 when a stage makes no progress although it has work.");
    for (const json& stage : at(status, "/stages"))
        out.sample(text_at(stage, "state") == "stalled", {{"stage", stage_name(stage)}});
    write_sources(out, status);
    write_modules(out, status);
    return out.take();
}

std::string http_metrics(const HttpStatistics& statistics, double age_s) {
    Exposition out;
    out.family("petacqd_status_age_seconds", gauge, "Age of the figures given here.");
    out.sample(age_s);
    out.family("petacqd_http_connections", gauge, "HTTP connections.");
    out.sample(statistics.connections);
    out.family("petacqd_http_connections_accepted_total", counter, "HTTP connections served.");
    out.sample(statistics.accepted);
    out.family("petacqd_http_connections_refused_total", counter, "HTTP connections turned away: too many.");
    out.sample(statistics.refused);
    out.family("petacqd_http_timeouts_total", counter, "HTTP connections closed for being too slow.");
    out.sample(statistics.timeouts);
    out.family("petacqd_http_responses_total", counter, "HTTP responses.");
    for (const auto& [code, count] : statistics.answers)
        out.sample(count, {{"code", std::to_string(code)}});
    return out.take();
}

}  // namespace petacq::daemon
