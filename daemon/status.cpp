#include "daemon/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "daemon/version.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

std::string address_text(std::uint32_t address, std::uint16_t port) {
    if (address == 0) return "";
    return fmt::format("{}.{}.{}.{}:{}", address >> 24, address >> 16 & 0xFF, address >> 8 & 0xFF,
                       address & 0xFF, port);
}

double rate(std::uint64_t now, std::uint64_t before, double seconds) {
    return seconds > 0 && now >= before ? static_cast<double>(now - before) / seconds : 0;
}

json make_rates(const StatusSample& now, const StatusSample& before) {
    const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
    const Ledger& a = now.acquisition->total;
    const Ledger& b = before.acquisition->total;
    return {{"interval_s", seconds},
            {"bytes_per_s", rate(now.bytes_received, before.bytes_received, seconds)},
            {"datagrams_per_s", rate(a.datagrams.received, b.datagrams.received, seconds)},
            {"frames_per_s", rate(a.frames.received, b.frames.received, seconds)},
            {"singles_per_s", rate(a.frames.accepted, b.frames.accepted, seconds)},
            {"prompts_per_s", rate(a.singles.prompts, b.singles.prompts, seconds)},
            {"delayeds_per_s", rate(a.singles.delayeds, b.singles.delayeds, seconds)},
            {"busy_fraction",
             seconds > 0 ? (now.acquisition->busy_s - before.acquisition->busy_s) / seconds : 0}};
}

json make_sockets(const StatusInput& in) {
    json sockets = json::array();
    for (const config::Socket& socket : in.configuration->receive.sockets) {
        for (std::uint32_t i = 0; i < socket.count && sockets.size() < in.ports.size(); ++i)
            sockets.push_back({{"address", socket.address}, {"port", in.ports[sockets.size()]}});
    }
    return sockets;
}

json make_sources(const StatusInput& in) {
    json sources = json::array();
    const bool bare = in.configuration->receive.framing == "bare";
    const double tick_s = in.scanner->tick_ps * 1e-12;
    const std::int64_t now_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(in.now->taken.time_since_epoch()).count();
    for (const SourceStatus& s : in.now->acquisition->sources.sources) {
        json one = {{"id", bare ? json() : json(s.id)},
                    {"address", address_text(s.address, s.port)},
                    {"state", name_of(s.state)},
                    {"datagrams", s.datagrams},
                    {"frames", s.frames},
                    {"duplicate", s.sequence.duplicate},
                    {"reordered", s.sequence.reordered},
                    {"restarted", s.sequence.restarted},
                    {"stray", s.sequence.stray},
                    {"clock_jumps", s.clock_jumps},
                    {"progress_s", static_cast<double>(s.progress) * tick_s}};
        one["lost"] = s.lost ? json(*s.lost) : json();
        one["skew_us"] = s.skew ? json(static_cast<double>(*s.skew) * tick_s * 1e6) : json();
        one["last_seen_s"] =
            s.last_seen ? json(std::max(0.0, static_cast<double>(now_ns - *s.last_seen) * 1e-9)) : json();
        sources.push_back(std::move(one));
    }
    return sources;
}

/// Of the singles since the histograms before, so that a change shows at once; since the start when there
/// were none in between.
json make_modules(const StatusInput& in) {
    json modules = json::array();
    const auto& now = in.now->acquisition->histograms;
    if (!now) return modules;
    const auto& before = in.before->acquisition->histograms;
    const double seconds = std::chrono::duration<double>(in.now->acquisition->histograms_taken -
                                                         in.before->acquisition->histograms_taken)
                               .count();
    gpu::SinglesHistograms recent = *now;
    const bool has_interval = before && seconds > 0;
    if (has_interval) recent -= *before;
    const config::Geometry& g = in.scanner->geometry;
    constexpr std::uint32_t bins = gpu::SinglesHistograms::energy_bins;
    constexpr double bin_keV =
        gpu::SinglesHistograms::energy_bin_keV;  // NOLINT(readability-identifier-naming)
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        const auto spectrum = std::span(recent.energy).subspan(std::size_t{bdm} * bins, bins);
        std::uint64_t singles = 0;
        double sum = 0;
        for (std::uint32_t bin = 0; bin < bins; ++bin) {
            singles += spectrum[bin];
            sum += static_cast<double>(spectrum[bin]) * (bin + 0.5) * bin_keV;
        }
        // The last bin takes everything above: not a peak.
        const auto peak = std::max_element(spectrum.begin(), spectrum.end() - 1) - spectrum.begin();
        std::int64_t temperature_sum = 0;
        std::uint64_t temperature_count = 0;
        for (std::size_t unit = std::size_t{bdm} * g.du_count; unit < (bdm + std::size_t{1}) * g.du_count;
             ++unit) {
            temperature_sum += recent.temperature_sum_16ths[unit];
            temperature_count += recent.temperature_count[unit];
        }
        const auto when = [](bool known, double value) { return known ? json(value) : json(); };
        modules.push_back(
            {{"bdm", bdm},
             {"singles_per_s", when(has_interval, static_cast<double>(singles) / seconds)},
             {"mean_keV", when(singles > 0, sum / static_cast<double>(singles))},
             {"peak_keV", when(singles > 0, (static_cast<double>(peak) + 0.5) * bin_keV)},
             {"temperature_C", when(temperature_count > 0, static_cast<double>(temperature_sum) / 16 /
                                                               static_cast<double>(temperature_count))}});
    }
    return modules;
}

json make_health(const StatusInput& in) {
    json reasons = json::array();
    const AcquisitionSnapshot& a = *in.now->acquisition;
    if (!a.failure.empty()) reasons.push_back(a.failure);
    if (!in.last_run_failure.empty()) reasons.push_back("last run failed: " + in.last_run_failure);
    const Ledger& now = a.total;
    const Ledger& before = in.before->acquisition->total;
    const auto rising = [&](std::uint64_t n, std::uint64_t b, const char* what) {
        if (n > b) reasons.push_back(fmt::format("{} {} in the last interval", n - b, what));
    };
    rising(now.datagrams.lost, before.datagrams.lost, "datagrams lost");
    rising(now.datagrams.dropped_kernel, before.datagrams.dropped_kernel, "datagrams dropped by the kernel");
    rising(now.datagrams.dropped_no_buffer, before.datagrams.dropped_no_buffer,
           "datagrams dropped: no free batch");
    rising(now.datagrams.malformed, before.datagrams.malformed, "malformed datagrams");
    rising(now.frames.late, before.frames.late, "late frames");
    rising(now.frames.time_jump, before.frames.time_jump, "frames with a time jump");
    if (a.sources.behind_watermark) {
        reasons.push_back("the sources agree on a time before the watermark: their frames are late");
    }
    if (in.now->acquisition->given_up > in.before->acquisition->given_up) {
        reasons.push_back(
            "more than pipeline.max_pending_singles wait for the watermark: sources that hold it back "
            "were given up");
    }
    if (in.run && in.run->written && in.run->written->stalls > in.stalls_before) {
        reasons.push_back("the disk does not keep up: every list-mode block buffer was waiting for it");
    }
    const bool bare = in.configuration->receive.framing == "bare";
    const auto timeout_ns = std::int64_t{in.configuration->watermark.source_timeout_ms} * 1'000'000;
    const std::int64_t now_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(in.now->taken.time_since_epoch()).count();
    for (const SourceStatus& s : a.sources.sources) {
        if (s.state == SourceState::active || s.state == SourceState::ended) continue;
        // A dark board that sends heartbeats is well.
        const bool heard = s.last_seen && now_ns - *s.last_seen < timeout_ns;
        if (s.state == SourceState::silent && heard) continue;
        reasons.push_back(fmt::format("source {} is {}",
                                      bare ? address_text(s.address, s.port) : std::to_string(s.id),
                                      name_of(s.state)));
    }
    const char* state = !a.failure.empty() ? "failed" : reasons.empty() ? "ok" : "degraded";
    return {{"state", state}, {"reasons", std::move(reasons)}};
}

}  // namespace

nlohmann::json make_status(const StatusInput& in) {
    const AcquisitionSnapshot& a = *in.now->acquisition;
    json status = {{"version", version},
                   {"state", in.state},
                   {"uptime_s", in.uptime_s},
                   {"backend", in.backend},
                   {"scanner", in.scanner->name},
                   {"health", make_health(in)},
                   {"rates", make_rates(*in.now, *in.before)},
                   {"sockets", make_sockets(in)},
                   {"sources", make_sources(in)},
                   {"modules", make_modules(in)},
                   {"watermark_s", static_cast<double>(a.watermark) * in.scanner->tick_ps * 1e-12}};
    const Ledger ledger = a.run ? *a.run : in.last_run_ledger.value_or(a.total);
    if (in.run) {
        status["run"] = {{"id", in.run->id}, {"start_utc", in.run->start_utc}, {"note", in.run->note}};
        status["run"]["duration_s"] = in.run->duration_s ? json(*in.run->duration_s) : json();
    } else {
        status["run"] = nullptr;
    }
    status["ledger"] = to_json(ledger);
    status["total"] = to_json(a.total);
    status["queues"] = {
        {"free_batches", in.free_batches},
        {"batches", in.batches},
        {"pending_singles", a.pending},
        {"writer_blocks", in.run && in.run->written ? in.run->written->queue_blocks : 0},
        {"writer_high_water", in.run && in.run->written ? in.run->written->queue_high_water : 0},
        {"writer_stalls", in.run && in.run->written ? in.run->written->stalls : 0},
        {"log_overrun", in.log_overrun},
        {"log_unwritten", in.log_unwritten}};
    status["memory"] = {{"batch_pool_bytes", in.pool_bytes},
                        {"pipeline_bytes", in.pipeline_bytes},
                        {"block_buffer_bytes", in.block_buffer_bytes}};
    return status;
}

}  // namespace petacq::daemon
