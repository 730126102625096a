#include "daemon/http/metrics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "daemon/http/resources.hpp"
#include "daemon/run/ledger.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// The declaration of a metric: a counter if the name ends in _total, else a gauge. tools/reference reads
/// these rows for docs/reference/http.md.
struct MetricFamily {
    const char* name;
    const char* labels;  ///< for the documentation: "source, state"
    const char* help;    ///< one sentence
    const char* pointer =
        nullptr;       ///< to the value: in the status document, or in one item of an array in it
    double scale = 1;  ///< from the unit there to the base unit
};

/// Takes families one after the other. A family without a sample is omitted.
class Exposition {
  public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string>>;

    /// Samples belong to this family from then on.
    void family(const MetricFamily& family) {
        family_ = family;
        announced_ = false;
    }

    /// Writes integers exactly and omits values that are no numbers.
    void sample(const json& value, Labels labels = {}, double scale = 1) {
        if (value.is_number_integer() && scale == 1) return write(value.dump(), labels);
        if (value.is_boolean()) return write(value.get<bool>() ? "1" : "0", labels);
        if (!value.is_number()) return;
        const double number = value.get<double>() * scale;
        if (std::isfinite(number)) write(fmt::format("{}", number), labels);
    }

    /// A family with one sample.
    void single(const MetricFamily& declared, const json& value, Labels labels = {}) {
        family(declared);
        sample(value, labels, declared.scale);
    }

    std::string take() { return fmt::to_string(out_); }

  private:
    void write(std::string_view value, Labels labels) {
        auto out = std::back_inserter(out_);
        const char* type = std::string_view(family_.name).ends_with("_total") ? "counter" : "gauge";
        if (!announced_)
            fmt::format_to(out, "# HELP {0} {1}\n# TYPE {0} {2}\n", family_.name, family_.help, type);
        announced_ = true;
        fmt::format_to(out, "{}", family_.name);
        char before = '{';
        for (const auto& [label, text] : labels) {
            fmt::format_to(out, "{}{}=\"{}\"", before, label, escaped(text));
            before = ',';
        }
        fmt::format_to(out, "{} {}\n", before == ',' ? "}" : "", value);
    }

    static std::string escaped(const std::string& text) {
        std::string result;
        for (const char c : text) {
            if (c == '\\' || c == '"') result += '\\';
            result += c == '\n' ? std::string("\\n") : std::string(1, c);
        }
        return result;
    }

    fmt::memory_buffer out_;
    MetricFamily family_{};
    bool announced_ = false;
};

const json& at(const json& document, std::string_view pointer) {
    static const json nothing;
    const json::json_pointer path{std::string(pointer)};
    return document.contains(path) ? document.at(path) : nothing;
}

std::string text_at(const json& document, const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || found->is_null()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
}

// clang-format off
constexpr MetricFamily ledger_closed{"petacqd_ledger_closed", "", "1 if every identity of the ledger holds: that of the run in progress, else of the last run.", "/ledger/closed"};

// The counters of the ledger are declared in lists (net/base/counter_list.hpp).
constexpr MetricFamily before_ledger[] = {
    {"petacqd_uptime_seconds", "", "Time since the daemon started.", "/uptime_s"},
    {"petacqd_watermark_seconds", "", "Detector time below which everything is decided.", "/watermark_s"},
    {"petacqd_runs_interrupted", "", "Runs that a crash or a power cut interrupted and that nobody has acknowledged.", "/interrupted/count"},
};
constexpr MetricFamily after_ledger[] = {
    {"petacqd_receive_bytes_per_second", "", "UDP payload received.", "/rates/bytes_per_s"},
    {"petacqd_raw_singles_per_second", "", "Singles inside a crystal, of any energy.", "/rates/singles_raw_per_s"},
    {"petacqd_net_trues_per_second", "", "Prompts less the expected randoms.", "/rates/net_trues_per_s"},
    {"petacqd_multiples_per_second", "", "Singles in multiples that were dropped.", "/rates/multiples_per_s"},
    {"petacqd_expected_randoms_per_second", "", "Random coincidences to be expected among the prompts.", "/rates/expected_randoms_per_s"},
    {"petacqd_expected_randoms_uncertain", "", "1 if they may be off by more than 2 %.", "/rates/expected_randoms_uncertain"},
    {"petacqd_necr_per_second", "", "Noise-equivalent count rate T^2/(T+S+R); absent without estimates.scatter_fraction.", "/rates/necr_per_s"},
    {"petacqd_necr_subtracted_per_second", "", "Noise-equivalent count rate T^2/(T+S+2R), if delayeds are subtracted; likewise.", "/rates/necr_subtracted_per_s"},
    {"petacqd_randoms_from_delayeds_per_second", "", "Delayeds times their weight.", "/rates/randoms_from_delayeds_per_s"},
    {"petacqd_pile_up_factor", "", "Pairs that would be found if no window held others, for each one found.", "/second/pile_up_factor"},
    {"petacqd_window_load", "", "Annihilations in a coincidence window besides that of its opener.", "/second/window_load"},
    {"petacqd_randoms_ratio", "", "Expected randoms to prompts.", "/rates/randoms_fraction"},
    {"petacqd_lost_ratio", "", "Lost datagrams to those sent, over about the last second.", "/rates/lost_fraction"},
    {"petacqd_acquisition_busy_ratio", "", "Share of its time that the acquisition thread works.", "/rates/busy_fraction"},
    {"petacqd_write_latency_median_seconds", "", "From the arrival of a datagram until its coincidences are handed to the kernel: median.", "/latency/p50_ms", 1e-3},
    {"petacqd_write_latency_p99_seconds", "", "From the arrival of a datagram until its coincidences are handed to the kernel: 99th percentile.", "/latency/p99_ms", 1e-3},
    {"petacqd_write_latency_max_seconds", "", "From the arrival of a datagram until its coincidences are handed to the kernel: largest.", "/latency/max_ms", 1e-3},
    {"petacqd_disk_free_bytes", "", "Free on the file system of data_dir.", "/disk/free_bytes"},
    {"petacqd_disk_size_bytes", "", "Size of the file system of data_dir.", "/disk/total_bytes"},
    {"petacqd_disk_write_bytes_per_second", "", "List-mode, seconds and raw capture written.", "/disk/write_bytes_per_s"},
    {"petacqd_disk_time_left_seconds", "", "Until the disk is full at the present rate.", "/disk/time_left_s"},
    {"petacqd_dead_time_ratio", "", "Dead time of the detector, an estimate.", "/dead_time/fraction"},
    {"petacqd_receive_batches_free", "", "Receive batches that are free.", "/queues/free_batches"},
    {"petacqd_receive_batches_free_low_water", "", "Fewest receive batches that were free since the latest run started.", "/queues/free_batches_low_water"},
    {"petacqd_receive_batches", "", "Receive batches in the pool.", "/queues/batches"},
    {"petacqd_singles_pending", "", "Accepted singles and tags that wait for the watermark.", "/queues/pending_singles"},
    {"petacqd_singles_pending_high_water", "", "Most singles and tags that waited for the watermark since the latest run started.", "/queues/pending_singles_high_water"},
    {"petacqd_given_up_slices_total", "", "Slices that did not wait for slow sources, to save memory.", "/queues/given_up_slices"},
    {"petacqd_seconds_queued", "", "Seconds of detector time that wait for their sums to be taken.", "/queues/seconds_waiting"},
    {"petacqd_seconds_stalls_total", "", "Times that the acquisition waited for the sums of seconds.", "/queues/seconds_stalls"},
    {"petacqd_writer_blocks_queued", "", "List-mode blocks that wait for the disk.", "/queues/writer_blocks"},
    {"petacqd_writer_blocks_queued_high_water", "", "Most list-mode blocks of the run that waited for the disk.", "/queues/writer_high_water"},
    {"petacqd_writer_stalls_total", "", "Times in this run that every list-mode block waited for the disk.", "/queues/writer_stalls"},
    {"petacqd_capture_batches_queued", "", "Receive batches that wait for the disk of the raw capture.", "/queues/capture_batches"},
    {"petacqd_capture_batches_queued_high_water", "", "Most receive batches of the run that waited for the disk of the raw capture.", "/queues/capture_high_water"},
    {"petacqd_capture_datagrams_written_total", "", "Datagrams of the run in its raw capture.", "/run/capture/datagrams_written"},
    {"petacqd_capture_datagrams_dropped_total", "", "Datagrams of the run missing from its raw capture.", "/run/capture/datagrams_dropped"},
    {"petacqd_tap_clients", "", "Clients connected to the live tap.", "/tap/clients"},
    {"petacqd_tap_accepted_total", "", "Requests that the live tap has accepted.", "/tap/accepted"},
    {"petacqd_tap_refused_total", "", "Requests that the live tap has refused.", "/tap/refused"},
    {"petacqd_tap_records_sent_total", "", "Records sent to clients of the live tap.", "/tap/sent"},
    {"petacqd_tap_records_dropped_total", "", "Records that clients of the live tap were too slow for.", "/tap/dropped"},
    {"petacqd_capture_written_bytes_total", "", "Size of the raw capture of the run.", "/run/capture/bytes"},
};

// One sample for each counter of that section that is declared by_reason.
constexpr MetricFamily by_reason_families[] = {
    {"petacqd_datagrams_rejected_total", "reason", "Datagrams received and not used.", "datagrams"},
    {"petacqd_frames_rejected_total", "reason", "Frames that did not become singles inside the energy window.", "frames"},
    {"petacqd_tags_rejected_total", "reason", "Tags that were not accepted.", "tags"},
    {"petacqd_gammas_total", "reason", "Gammas that were counted, by whether they are in a triple.", "gammas"},
    {"petacqd_singles_unused_total", "reason", "Singles that are in no coincidence.", "singles"},
};

constexpr MetricFamily of_stage[] = {
    {"petacqd_stage_utilisation_ratio", "stage", "Share of its time that a stage works.", "/utilisation"},
};
constexpr MetricFamily of_source[] = {
    {"petacqd_source_datagrams_total", "source", "Datagrams of a source.", "/datagrams"},
    {"petacqd_source_frames_total", "source", "Frames of a source.", "/frames"},
    {"petacqd_source_datagrams_lost", "source", "Datagrams of a source that are missing; decreases when a late one arrives.", "/lost"},
    {"petacqd_source_lost_ratio", "source", "Lost datagrams of a source to those it sent, over about the last second.", "/lost_fraction"},
    {"petacqd_source_duplicates_total", "source", "Datagrams of a source that arrived twice.", "/duplicate"},
    {"petacqd_source_skew_seconds", "source", "Detector time of a source less the time that the sources agree on.", "/skew_us", 1e-6},
    {"petacqd_source_last_seen_seconds", "source", "Time since the latest datagram of a source, heartbeats included.", "/last_seen_s"},
};
constexpr MetricFamily of_tag[] = {
    {"petacqd_tag_value", "tag", "Value of the latest tag of a channel and kind: channel/kind.", "/value"},
    {"petacqd_tag_time_seconds", "tag", "Detector time of the latest tag of a channel and kind.", "/time_s"},
};
constexpr MetricFamily of_module[] = {
    {"petacqd_module_singles_per_second", "module", "Singles of a BDM, of any energy.", "/singles_per_s"},
    {"petacqd_module_energy_mean_electronvolts", "module", "Mean energy of the singles of a BDM.", "/mean_keV", 1e3},
    {"petacqd_module_energy_peak_electronvolts", "module", "Most frequent energy of the singles of a BDM.", "/peak_keV", 1e3},
    {"petacqd_module_photopeak_electronvolts", "module", "Mean energy of the prompts of a BDM near 511 keV.", "/photopeak_keV", 1e3},
    {"petacqd_module_mean_time_difference_seconds", "module", "Mean time of the other single of a true prompt, less that in the BDM.", "/mean_dt_ns", 1e-9},
    {"petacqd_module_prompts_per_single", "module", "Ends of true prompts in a BDM to its singles.", "/prompts_per_single"},
    {"petacqd_module_temperature_celsius", "module", "Temperature of a BDM.", "/temperature_C"},
    {"petacqd_module_dead_time_ratio", "module", "Dead time of a BDM, as the boards report it, else an estimate.", "/dead_time_fraction"},
    {"petacqd_module_expected_randoms_per_second", "module", "Random coincidences to be expected in a BDM.", "/expected_randoms_per_s"},
};
constexpr MetricFamily of_synchrony[] = {
    {"petacqd_module_time_offset_seconds", "module", "How late the times of a BDM are against the others.", "/offset_ns", 1e-9},
};

// clang-format on

void write_state(Exposition& out, const MetricFamily& family, const std::string& now,
                 std::initializer_list<const char*> states) {
    out.family(family);
    for (const char* state : states)
        out.sample(now == state, {{"state", state}});
}

void write_states(Exposition& out, const json& status) {
    out.single(
        {"petacqd_build_info", "version, scanner, backend", "Version, scanner and back-end; always 1."}, 1,
        {{"version", text_at(status, "version")},
         {"scanner", text_at(status, "scanner")},
         {"backend", text_at(status, "backend")}});
    write_state(out, {"petacqd_state", "state", "1 for the state that the daemon is in."},
                text_at(status, "state"), {"idle", "starting", "running", "stopping", "failed"});
    if (const json& recording = at(status, "/recording"); recording.is_object()) {
        write_state(out, {"petacqd_recording", "state", "1 for the state of the strip of the page."},
                    text_at(recording, "state"),
                    {"recording", "not_recording", "waiting_for_data", "no_data", "interrupted", "failed"});
    }
    if (const json& peer = at(status, "/peer"); peer.is_object()) {
        write_state(
            out, {"petacqd_peer", "state", "1 for what the other host of a pair does; without one, nothing."},
            text_at(peer, "state"), {"recording", "not_recording", "other_run", "unreachable"});
    }
    if (const json& last = at(status, "/last_run"); last.is_object())
        write_state(out, {"petacqd_last_run_verdict", "state", "1 for the verdict on the last run."},
                    text_at(last, "verdict"), {"good", "doubtful", "bad"});
    if (const json& health = at(status, "/health"); health.is_object()) {
        write_state(out, {"petacqd_health", "state", "1 for the health that the daemon is in."},
                    text_at(health, "state"), {"ok", "degraded", "failed"});
        out.family({"petacqd_health_reasons", "reason, severity",
                    "Reasons of that kind for degraded or failed health."});
        std::map<std::pair<std::string, std::string>, int> reasons;
        for (const json& reason : at(health, "/reasons")) {
            if (!reason.is_object()) continue;
            const json& count = at(reason, "/count");
            reasons[{text_at(reason, "code"), text_at(reason, "severity")}] +=
                count.is_number_unsigned() ? count.get<int>() : 1;
        }
        for (const auto& [kind, count] : reasons)
            out.sample(count, {{"reason", kind.first}, {"severity", kind.second}});
    }
    if (const json& capture = at(status, "/run/capture"); capture.is_object())
        out.single({"petacqd_capture_failed", "", "1 if the raw capture stopped early."},
                   capture.contains("failure") && !capture.at("failure").is_null());
    if (const json& run = at(status, "/run"); run.is_object())
        out.single({"petacqd_run_info", "run", "The run in progress; always 1."}, 1,
                   {{"run", text_at(run, "id")}});
}

void write_values(Exposition& out, const json& status, std::span<const MetricFamily> families) {
    for (const MetricFamily& family : families)
        out.single(family, at(status, family.pointer));
}

const json& value_of(const LedgerCounter& counter, const json& status, const char* ledger) {
    return at(status, std::string(ledger) + '/' + counter.section + '/' + counter.name);
}

/// Counters with a metric of their own. Pairs are counted per run; `total` does not have them.
void write_ledger(Exposition& out, const json& status) {
    for (const bool pairs : {false, true}) {
        if (pairs) out.single(ledger_closed, at(status, ledger_closed.pointer));
        for (const LedgerCounter& counter : ledger_counters()) {
            const std::string_view metric = counter.metric;
            if (metric == by_reason || metric == no_metric) continue;
            if (pairs != (counter.section == std::string_view("pairs"))) continue;
            out.family({counter.metric, "", counter.help});
            out.sample(value_of(counter, status, pairs ? "/ledger" : "/total"));
        }
    }
}

void write_reasons(Exposition& out, const json& status) {
    for (const MetricFamily& family : by_reason_families) {
        out.family(family);
        for (const LedgerCounter& counter : ledger_counters()) {
            if (counter.metric == std::string_view(by_reason) &&
                counter.section == std::string_view(family.pointer))
                out.sample(value_of(counter, status, "/total"), {{"reason", counter.name}});
        }
    }
    out.family({"petacqd_log_messages_lost_total", "reason", "Log messages dropped."});
    for (const char* reason : {"log_overrun", "log_unwritten"})
        out.sample(at(status, std::string("/queues/") + reason), {{"reason", reason}});
}

/// One sample of each family for each item of an array that `name_of` can tell from the others.
template <class NameOf>
void write_items(Exposition& out, const json& items, const char* label, NameOf name_of,
                 std::span<const MetricFamily> families) {
    if (!items.is_array()) return;
    for (const MetricFamily& family : families) {
        out.family(family);
        std::set<std::string> seen;
        for (const json& item : items) {
            const std::string name = name_of(item);
            if (seen.insert(name).second) out.sample(at(item, family.pointer), {{label, name}}, family.scale);
        }
    }
}

void write_memory(Exposition& out, const json& status) {
    out.family({"petacqd_memory_bytes", "use", "Memory set aside."});
    for (const auto& [use, pointer] : std::initializer_list<std::pair<const char*, const char*>>{
             {"batch_pool", "/memory/batch_pool_bytes"},
             {"pipeline", "/memory/pipeline_bytes"},
             {"block_buffers", "/memory/block_buffer_bytes"}})
        out.sample(at(status, pointer), {{"use", use}});
}

void write_network(Exposition& out, const json& network) {
    out.family({"petacqd_kernel_network_total", "counter",
                "Counters of the kernel for received packets, by their names in nstat."});
    if (!network.is_object()) return;
    for (const auto& [counter, value] : network.items())
        out.sample(value, {{"counter", counter}});
}

void write_stages(Exposition& out, const json& stages) {
    const auto name = [](const json& stage) { return text_at(stage, "name"); };
    write_items(out, stages, "stage", name, of_stage);
    out.family({"petacqd_stage_stalled", "stage", "1 if a stage makes no progress although it has work."});
    for (const json& stage : stages)
        out.sample(text_at(stage, "state") == "stalled", {{"stage", name(stage)}});
}

void write_sources(Exposition& out, const json& sources) {
    const auto name = [](const json& source) {
        const std::string id = text_at(source, "id");
        return id.empty() ? text_at(source, "address") : id;
    };
    write_items(out, sources, "source", name, of_source);
    out.family({"petacqd_source_state", "source, state", "1 for the state that a source is in."});
    if (!sources.is_array()) return;
    std::set<std::string> seen;
    for (const json& source : sources) {
        if (!seen.insert(name(source)).second) continue;
        for (const char* state : {"active", "silent", "lagging", "leading", "ended", "jumping"})
            out.sample(text_at(source, "state") == state, {{"source", name(source)}, {"state", state}});
    }
}

}  // namespace

std::string daemon_metrics(const json& status) {
    if (!status.is_object()) return "";
    Exposition out;
    write_states(out, status);
    write_values(out, status, before_ledger);
    write_ledger(out, status);
    write_values(out, status, after_ledger);
    write_reasons(out, status);
    write_memory(out, status);
    write_network(out, at(status, "/network"));
    write_stages(out, at(status, "/stages"));
    write_sources(out, at(status, "/sources"));
    write_items(
        out, at(status, "/tags"), "tag",
        [](const json& t) { return text_at(t, "channel") + '/' + text_at(t, "kind"); }, of_tag);
    const auto bdm = [](const json& m) { return text_at(m, "bdm"); };
    write_items(out, at(status, "/modules"), "module", bdm, of_module);
    write_items(out, at(status, "/synchrony/modules"), "module", bdm, of_synchrony);
    return out.take();
}

std::string http_metrics(const HttpStatistics& statistics, double age_s) {
    Exposition out;
    out.single({"petacqd_status_age_seconds", "", "Age of the values given here."}, age_s);
    out.single({"petacqd_http_connections", "", "HTTP connections."}, statistics.connections);
    out.single({"petacqd_http_connections_accepted_total", "", "HTTP connections served."},
               statistics.accepted);
    out.single({"petacqd_http_connections_refused_total", "",
                "HTTP connections refused because there were too many."},
               statistics.refused);
    out.single({"petacqd_http_timeouts_total", "", "HTTP connections closed for being too slow."},
               statistics.timeouts);
    out.family({"petacqd_http_responses_total", "code", "HTTP responses."});
    for (const auto& [code, count] : statistics.answers)
        out.sample(count, {{"code", std::to_string(code)}});
    return out.take();
}

}  // namespace petacq::daemon
