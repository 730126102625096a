#include "daemon/status.hpp"

#include <algorithm>

#include "daemon/status_parts.hpp"
#include "daemon/version.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}

json make_health(const StatusInput& in) {
    json reasons = json::array();
    for (const HealthReason& reason : in.health->reasons()) {
        const double since = std::chrono::duration<double>(in.now->taken - reason.since).count();
        reasons.push_back({{"code", reason.problem.code},
                           {"message", reason.problem.message()},
                           {"severity", reason.problem.failed ? "failed" : "degraded"},
                           {"since_s", std::max(0.0, since)}});
    }
    return {{"state", in.health->state()}, {"reasons", std::move(reasons)}};
}

json make_run(const StatusInput& in) {
    if (!in.run) return {};
    return {{"id", in.run->id},
            {"start_utc", in.run->start_utc},
            {"note", in.run->note},
            {"duration_s", or_null(in.run->duration_s)},
            {"capture", to_json(in.run->capture)}};
}

json make_sockets(const StatusInput& in) {
    json sockets = json::array();
    for (const config::Socket& socket : in.configuration->receive.sockets) {
        for (std::uint32_t i = 0; i < socket.count && sockets.size() < in.ports.size(); ++i)
            sockets.push_back({{"address", socket.address}, {"port", in.ports[sockets.size()]}});
    }
    return sockets;
}

json make_latency(const StatusInput& in) {
    const LatencySummary l = in.run ? in.run->latency : LatencySummary{};
    const auto known = [&](double ms) { return l.samples > 0 ? json(ms) : json(); };
    return {{"samples", l.samples},
            {"p50_ms", known(l.p50_ms)},
            {"p99_ms", known(l.p99_ms)},
            {"max_ms", known(l.max_ms)}};
}

json make_disk(const StatusInput& in) {
    const auto& space = in.disk.space;
    return {{"path", in.configuration->data_dir.string()},
            {"free_bytes", space ? json(space->free_bytes) : json()},
            {"total_bytes", space ? json(space->total_bytes) : json()},
            {"write_bytes_per_s", in.disk.write_bytes_per_s},
            {"time_left_s", or_null(in.disk.time_left_s())}};
}

json make_stages(const StatusInput& in) {
    json stages = json::array();
    for (const StageState& stage : in.stages) {
        stages.push_back(
            {{"name", stage.name}, {"utilisation", stage.utilisation}, {"state", name_of(stage.activity)}});
    }
    return stages;
}

json make_queues(const StatusInput& in) {
    const AcquisitionSnapshot& a = *in.now->acquisition;
    const ListModeCounts written = in.run ? in.run->written.value_or(ListModeCounts{}) : ListModeCounts{};
    const CaptureCounts captured = in.run && in.run->capture ? in.run->capture->counts : CaptureCounts{};
    return {{"free_batches", in.free_batches},
            {"free_batches_low_water", a.free_batches_low_water},
            {"batches", in.batches},
            {"pending_singles", a.pending},
            {"pending_singles_high_water", a.pending_high_water},
            {"given_up_slices", a.given_up},
            {"writer_blocks", written.queue_blocks},
            {"writer_high_water", written.queue_high_water},
            {"writer_stalls", written.stalls},
            {"capture_batches", captured.queue_batches},
            {"capture_high_water", captured.queue_high_water},
            {"log_overrun", in.log_overrun},
            {"log_unwritten", in.log_unwritten}};
}

}  // namespace

json to_json(const std::optional<CaptureStatus>& capture) {
    if (!capture) return {};
    return {{"datagrams_offered", capture->counts.offered},
            {"datagrams_written", capture->counts.written},
            {"datagrams_dropped", capture->counts.dropped},
            {"bytes", capture->counts.bytes},
            {"failure", capture->failure.empty() ? json() : json(capture->failure)}};
}

json make_status(const StatusInput& in) {
    const AcquisitionSnapshot& a = *in.now->acquisition;
    std::optional<double> expected_randoms;
    if (in.expected_randoms) expected_randoms = in.expected_randoms->total;
    const RateSetting setting{in.configuration->coincidence.delay_ticks.has_value(),
                              in.configuration->estimates.scatter_fraction};
    const Ledger ledger = a.run ? *a.run : in.last_run_ledger.value_or(a.total);
    json status = {{"version", version},
                   {"state", in.state},
                   {"uptime_s", in.uptime_s},
                   {"backend", in.backend},
                   {"backend_choice", in.backend_choice},
                   {"scanner", in.scanner->name},
                   {"health", make_health(in)},
                   {"run", make_run(in)},
                   {"rates", make_rates(a, *in.before->acquisition, setting, expected_randoms)},
                   {"average", make_rates(a, *in.began, setting, in.average_randoms_per_s)},
                   {"latency", make_latency(in)},
                   {"ledger", to_json(ledger)},
                   {"total", to_json(a.total)},
                   {"sockets", make_sockets(in)},
                   {"sources", make_sources(in)},
                   {"modules", make_modules(in)},
                   {"dead_time", make_dead_time(in)},
                   {"watermark_s", static_cast<double>(a.watermark) * in.scanner->tick_ps * 1e-12},
                   {"stages", make_stages(in)},
                   {"queues", make_queues(in)},
                   {"disk", make_disk(in)}};
    status["memory"] = {{"batch_pool_bytes", in.pool_bytes},
                        {"pipeline_bytes", in.pipeline_bytes},
                        {"block_buffer_bytes", in.block_buffer_bytes}};
    return status;
}

}  // namespace petacq::daemon
