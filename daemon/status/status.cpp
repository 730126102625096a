#include "daemon/status/status.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/status/document_detector.hpp"
#include "daemon/status/document_peer.hpp"
#include "daemon/status/document_reception.hpp"
#include "daemon/status/document_recording.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/reason_order.hpp"
#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

json make_health(const Observation& seen) {
    const auto seconds_since = [&](std::chrono::steady_clock::time_point then) {
        return std::max(0.0, std::chrono::duration<double>(seen.now->taken - then).count());
    };
    json reasons = json::array();
    for (const RankedReason& reason : ranked(seen.health->reasons())) {
        reasons.push_back(
            {{"code", reason.code},
             {"count", reason.count},
             {"message", reason.message},
             {"severity", reason.failed ? "failed" : "degraded"},
             {"since_s", seconds_since(reason.since)},
             {"seen_s", seconds_since(reason.seen)},
             {"follows_from", reason.follows_from.empty() ? json() : json(reason.follows_from)}});
    }
    return {{"state", seen.health->state()}, {"reasons", std::move(reasons)}};
}

/// The object `common`: hosts that receive one scanner must agree on these values.
json make_common(const Observation& seen, const Installation& installation) {
    const config::Energy& energy = seen.configuration().energy;
    const config::Gammas gammas = seen.configuration().gammas.value_or(config::Gammas{});
    const bool has_gammas = seen.configuration().gammas.has_value();
    return {{"clock", seen.configuration().clock},
            {"tick_ps", seen.scanner().tick_ps},
            {"scanner_sha256", installation.scanner_sha256},
            {"lower_keV", number_if(energy.filter, energy.lower_keV)},
            {"upper_keV", number_if(energy.filter, energy.upper_keV)},
            {"gammas_lower_keV", number_if(has_gammas, gammas.lower_keV)},
            {"gammas_upper_keV", number_if(has_gammas, gammas.upper_keV)},
            {"writes_singles", seen.configuration().listmode.write_singles}};
}

json make_calibration(const Observation& seen) {
    json document = to_json(seen.setting->calibration);
    document["next"] = nullptr;
    if (const auto& next = seen.run->next_calibration) {
        document["next"] = to_json(*next);
        document["next"].erase("taken_utc");
    }
    return document;
}

json make_run(const Observation& seen) {
    if (!seen.run->current) return {};
    const RunDescription& run = *seen.run->current;
    json document = {{"id", run.id},
                     {"start_utc", utc_text(run.started)},
                     {"note", run.note},
                     {"operator", to_json(run.operator_data, run.started)},
                     {"duration_s", or_null(run.duration_s)},
                     {"start_ticks", or_null(run.start_ticks)},
                     {"stop_ticks", or_null(run.stop_ticks)},
                     {"marks", {{"count", run.marks.count}, {"latest", to_json(run.marks.latest)}}},
                     {"waiting", seen.run->waiting},
                     {"waiting_for_data", false},
                     {"capture", nullptr}};
    if (seen.now->acquisition->run) {
        document["start_ticks"] = or_null(seen.now->acquisition->run_start);
        document["waiting_for_data"] = !seen.now->acquisition->run_start;
    }
    if (seen.now->run && seen.now->run->capture) document["capture"] = to_json(*seen.now->run->capture);
    return document;
}

json make_interrupted(const std::vector<InterruptedRun>& interrupted) {
    constexpr std::size_t max_listed = 10;
    json runs = json::array();
    for (std::size_t i = interrupted.size() - std::min(interrupted.size(), max_listed);
         i < interrupted.size(); ++i) {
        const InterruptedRun& run = interrupted[i];
        runs.push_back({{"id", run.id},
                        {"path", run.path.string()},
                        {"start_utc", run.start_utc.empty() ? json() : json(run.start_utc)}});
    }
    return {{"count", interrupted.size()}, {"runs", std::move(runs)}};
}

json cores_or_null(const net::Cores& cores) {
    return cores.empty() ? json() : json(net::to_text(cores));
}

json make_placement(const Placement& placement) {
    return {{"acquisition", cores_or_null(placement.acquisition)},
            {"pool", cores_or_null(placement.pool)},
            {"results", cores_or_null(placement.results)}};
}

json make_sockets(const Observation& seen, const Installation& installation) {
    const std::vector<std::uint16_t>& ports = installation.ports;
    json sockets = json::array();
    for (const config::Socket& socket : seen.configuration().receive.sockets) {
        for (std::uint32_t i = 0; i < socket.count && sockets.size() < ports.size(); ++i) {
            const std::size_t number = sockets.size();
            sockets.push_back({{"address", socket.address},
                               {"port", ports[number]},
                               {"cores", cores_or_null(installation.cores[number])}});
        }
    }
    return sockets;
}

json make_latency(const Reading& now) {
    const LatencySummary l = now.run ? now.run->latency : LatencySummary{};
    return {{"samples", l.samples},
            {"p50_ms", number_if(l.samples > 0, l.p50_ms)},
            {"p99_ms", number_if(l.samples > 0, l.p99_ms)},
            {"max_ms", number_if(l.samples > 0, l.max_ms)}};
}

json make_disk(const Observation& seen) {
    const DiskStatus& disk = seen.now->disk;
    return {{"path", seen.configuration().data_dir.string()},
            {"free_bytes", disk.space ? json(disk.space->free_bytes) : json()},
            {"total_bytes", disk.space ? json(disk.space->total_bytes) : json()},
            {"write_bytes_per_s", disk.write_bytes_per_s},
            {"time_left_s", or_null(disk.time_left_s())}};
}

json make_stages(const Reading& now) {
    json stages = json::array();
    for (const StageState& stage : now.stages) {
        stages.push_back(
            {{"name", stage.name}, {"utilisation", stage.utilisation}, {"state", name_of(stage.activity)}});
    }
    return stages;
}

json make_queues(const Reading& now, std::size_t batches) {
    const AcquisitionSnapshot& a = *now.acquisition;
    const ListModeCounts written = now.run ? now.run->written : ListModeCounts{};
    const CaptureCounts captured = now.run && now.run->capture ? now.run->capture->counts : CaptureCounts{};
    return {{"free_batches", now.free_batches},
            {"free_batches_low_water", a.free_batches_low_water},
            {"batches", batches},
            {"pending_singles", a.pending},
            {"pending_singles_high_water", a.pending_high_water},
            {"given_up_slices", a.given_up},
            {"seconds_waiting", a.pace.waiting},
            {"seconds_stalls", a.pace.stalls},
            {"writer_blocks", written.queue_blocks},
            {"writer_high_water", written.queue_high_water},
            {"writer_stalls", written.stalls},
            {"capture_batches", captured.queue_batches},
            {"capture_high_water", captured.queue_high_water},
            {"log_overrun", now.log.overrun},
            {"log_unwritten", now.log.unwritten}};
}

/// The latest tag of each channel and kind, in that order.
json make_tags(const Observation& seen) {
    json tags = json::array();
    for (const gpu::Tag& tag : seen.now->acquisition->latest_tags) {
        // A position is signed; the others are not.
        const bool is_signed = tag.kind == static_cast<std::uint8_t>(gpu::TagKind::position);
        tags.push_back({{"channel", tag.channel},
                        {"kind", tag.kind},
                        {"source", tag.source},
                        {"time_s", static_cast<double>(tag.time) * seen.scanner().tick_ps * 1e-12},
                        {"value", is_signed ? json(static_cast<std::int32_t>(tag.value)) : json(tag.value)}});
    }
    return tags;
}

json make_memory(const config::Configuration& configuration, const Installation& installation) {
    const config::ListMode& listmode = configuration.listmode;
    const std::uint64_t files = configuration.record_kinds() + 1;  // tags have one, too
    return {{"batch_pool_bytes", installation.pool_bytes},
            {"pipeline_bytes", installation.pipeline_bytes},
            {"block_buffer_bytes", std::uint64_t{listmode.queue_blocks} * listmode.block_bytes * files}};
}

json make_tap(const std::string& socket, const TapStatistics& tap) {
    if (socket.empty()) return nullptr;
    return {{"socket", socket},       {"clients", tap.clients}, {"accepted", tap.accepted},
            {"refused", tap.refused}, {"sent", tap.sent},       {"dropped", tap.dropped}};
}

/// Hits inside a crystal, of any energy and time.
std::uint64_t raw_singles(const gpu::FrameCounts& f) {
    return f.received - f.bad_marker - f.bad_address - f.outside_crystal;
}

}  // namespace

json number_if(bool known, double value) {
    return known ? json(value) : json();
}

double rate(std::uint64_t now, std::uint64_t before, double seconds) {
    return seconds > 0 && now >= before ? static_cast<double>(now - before) / seconds : 0;
}

namespace {

/// 0 if there are none.
double per(double amount, std::uint64_t number) {
    return number > 0 ? amount / static_cast<double>(number) : 0;
}

/// Randoms, and the rates that follow from them. Seconds of detector time do not coincide with the interval
/// of the rates, and take longer or shorter where data are slow or catch up: the singles decided in the
/// interval say how much of what was measured it holds.
void add_randoms(json& rates, const RateSetting& setting, const SecondsTotal& measured,
                 double singles_per_s) {
    for (const char* key :
         {"expected_randoms_per_s", "expected_randoms_uncertain", "randoms_from_delayeds_per_s",
          "randoms_fraction", "net_trues_per_s", "necr_per_s", "necr_subtracted_per_s"})
        rates[key] = nullptr;
    rates["necr_scatter_fraction"] = setting.scatter_fraction ? json(*setting.scatter_fraction) : json();
    rates["necr_scatter_fraction_from"] =
        !setting.scatter_fraction
            ? "unknown: set estimates.scatter_fraction to the result of petlm nema scatter"
        : setting.scatter_fraction_from.empty() ? "estimates.scatter_fraction"
                                                : setting.scatter_fraction_from;
    if (measured.length_s <= 0 || std::isnan(measured.randoms)) return;
    if (measured.singles == 0 && singles_per_s > 0) return;
    const double prompts = rates["prompts_per_s"];
    const double delayeds = rates["delayeds_per_s"];
    const double randoms = measured.randoms * per(singles_per_s, measured.singles);
    const double net = prompts - randoms;
    rates["expected_randoms_per_s"] = randoms;
    rates["expected_randoms_uncertain"] = measured.uncertain_s > 0;
    rates["randoms_from_delayeds_per_s"] =
        number_if(setting.delayeds && (measured.delayeds > 0 || delayeds == 0),
                  measured.weighted_delayeds * per(delayeds, measured.delayeds));
    rates["randoms_fraction"] = number_if(prompts > 0, randoms / prompts);
    rates["net_trues_per_s"] = net;
    if (!setting.scatter_fraction) return;
    const double trues = std::max(0.0, net) * (1 - *setting.scatter_fraction);
    // prompts = trues + scatters + randoms. Subtracting delayeds adds the noise of the randoms once more.
    rates["necr_per_s"] = prompts > 0 ? trues * trues / prompts : 0;
    rates["necr_subtracted_per_s"] = prompts > 0 ? trues * trues / (prompts + randoms) : 0;
}

}  // namespace

json make_rates(const AcquisitionSnapshot& now, const AcquisitionSnapshot& before, const RateSetting& setting,
                const SecondsTotal& measured) {
    const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
    const Ledger& a = now.total;
    const Ledger& b = before.total;
    const double received = rate(a.datagrams.received, b.datagrams.received, seconds);
    const double lost = rate(a.datagrams.lost, b.datagrams.lost, seconds);
    const double multiples = rate(a.singles.in_dropped_multiples + a.singles.in_oversize_multiples,
                                  b.singles.in_dropped_multiples + b.singles.in_oversize_multiples, seconds);
    json rates = {
        {"interval_s", seconds},
        {"bytes_per_s", rate(now.bytes_received, before.bytes_received, seconds)},
        {"datagrams_per_s", received},
        {"lost_fraction", number_if(a.loss_known() && received + lost > 0, lost / (received + lost))},
        {"frames_per_s", rate(a.frames.received, b.frames.received, seconds)},
        {"singles_raw_per_s", rate(raw_singles(a.frames), raw_singles(b.frames), seconds)},
        {"singles_per_s", rate(a.frames.accepted, b.frames.accepted, seconds)},
        {"multiples_per_s", multiples},
        {"prompts_per_s", rate(a.singles.prompts, b.singles.prompts, seconds)},
        {"delayeds_per_s", rate(a.singles.delayeds, b.singles.delayeds, seconds)},
        {"triples_per_s", number_if(setting.triples, rate(a.gammas.triples, b.gammas.triples, seconds))},
        {"delayed_triples_per_s",
         number_if(setting.triples, rate(a.gammas.delayed, b.gammas.delayed, seconds))},
        {"busy_fraction", seconds > 0 ? std::clamp((now.busy_s - before.busy_s) / seconds, 0.0, 1.0) : 0}};
    add_randoms(rates, setting, measured, rate(a.singles.decided, b.singles.decided, seconds));
    return rates;
}

namespace {

/// Null until there is one.
json make_second(const Second* second, const RateSetting& setting, double tick_s) {
    if (second == nullptr) return nullptr;
    std::uint64_t abs_dt = 0;  // of both ends
    for (const gpu::PromptEnds& module : second->sums.modules)
        abs_dt += module.abs_dt;
    const auto ends = 2 * static_cast<double>(second->sums.counts.prompts);
    return {{"start_ticks", second->range.start},
            {"length_s", second->length_s},
            {"window_load", number_if(!std::isnan(second->load), second->load)},
            {"pile_up_factor", number_if(!std::isnan(second->pile_up), second->pile_up)},
            {"delayeds_weight", number_if(setting.delayeds, second->delayeds_weight)},
            {"mean_abs_dt_ns", number_if(ends > 0, static_cast<double>(abs_dt) / ends * tick_s * 1e9)}};
}

/// The ledger of the run in progress. If there is none: that of the last run, or of all since the daemon
/// started.
Ledger ledger_of_run(const Observation& seen) {
    const AcquisitionSnapshot& a = *seen.now->acquisition;
    if (a.run) return *a.run;
    if (seen.run->current && !seen.run->start) return {};  // it has not started, and has counted nothing
    return seen.run->last_ledger.value_or(a.total);
}

json make_last_run(const std::optional<EndedRun>& run) {
    if (!run) return nullptr;
    return {{"id", run->id},
            {"verdict", run->verdict.empty() ? json() : json(run->verdict)},
            {"failed", run->failed},
            {"reason", run->reason}};
}

}  // namespace

json make_status(const Observation& seen, const Installation& installation) {
    const config::Configuration& configuration = seen.configuration();
    const AcquisitionSnapshot& a = *seen.now->acquisition;
    SecondsTotal recent = a.seconds - seen.before->acquisition->seconds;
    if (recent.length_s <= 0 && a.second) {  // none has ended in the interval
        recent = {};
        recent.add(*a.second);
    }
    const RateSetting setting{configuration.coincidence.delay_ticks.has_value(),
                              configuration.estimates.scatter_fraction,
                              configuration.estimates.scatter_fraction_from, configuration.finds_triples()};
    return {{"version", version},
            {"state", name_of(seen.run->daemon)},
            {"recording", make_recording(seen)},
            {"uptime_s", installation.uptime_s},
            {"backend", seen.setting->backend},
            {"backend_choice", seen.setting->backend_choice},
            {"placement", make_placement(seen.setting->placement)},
            {"scanner", seen.scanner().name},
            {"calibration", make_calibration(seen)},
            {"common", make_common(seen, installation)},
            {"health", make_health(seen)},
            {"run", make_run(seen)},
            {"last_run", make_last_run(seen.run->ended)},
            {"interrupted", make_interrupted(seen.run->interrupted)},
            {"rates", make_rates(a, *seen.before->acquisition, setting, recent)},
            {"average", make_rates(a, *seen.start, setting, a.seconds - seen.start->seconds)},
            {"second", make_second(a.second.get(), setting, seen.scanner().tick_ps * 1e-12)},
            {"latency", make_latency(*seen.now)},
            {"ledger", to_json(ledger_of_run(seen))},
            {"total", to_json(a.total)},
            {"sockets", make_sockets(seen, installation)},
            {"sources", make_sources(seen)},
            {"unknown_sources", make_unknown_sources(seen)},
            {"reception", make_reception(seen)},
            {"network", seen.now->network.counters},
            {"modules", make_modules(seen)},
            {"synchrony", make_synchrony(seen)},
            {"dead_time", make_dead_time(seen)},
            {"tags", make_tags(seen)},
            {"watermark_s", static_cast<double>(a.watermark) * seen.scanner().tick_ps * 1e-12},
            {"stages", make_stages(*seen.now)},
            {"queues", make_queues(*seen.now, installation.batches)},
            {"disk", make_disk(seen)},
            {"peer", make_peer(*seen.now)},
            {"tap", make_tap(configuration.tap.socket, a.tap)},
            {"memory", make_memory(configuration, installation)}};
}

}  // namespace petacq::daemon
