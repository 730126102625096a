#include "daemon/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace petacq::daemon {

namespace {

using std::chrono::nanoseconds;

/// Counted since the reading before.
std::uint64_t more(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

double fraction(std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// "12 datagrams", "1 datagram"
std::string counted(std::uint64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}
/// "12 datagrams (0.12 %)"
std::string counted(std::uint64_t n, std::uint64_t of, const char* what) {
    return fmt::format("{} ({:.3g} %)", counted(n, what), 100 * fraction(n, of));
}

class Finder {
  public:
    Finder(const HealthReading& reading, const Health& health) : in_(reading), health_(health) {}

    std::vector<Problem> find() {
        failures();
        datagrams();
        frames();
        for (std::uint32_t i = 0; i < in_.now->sources.sources.size(); ++i)
            source(i);
        temperatures();
        disk();
        latency();
        stages();
        return std::move(found_);
    }

  private:
    Problem& add(const char* code, std::string what, std::string advice, std::uint32_t subject = 0) {
        found_.push_back({code, subject, std::move(what), std::move(advice)});
        return found_.back();
    }
    [[nodiscard]] bool raised(const char* code, std::uint32_t subject = 0) const {
        return health_.find(code, subject) != nullptr;
    }

    void failures() {
        if (!in_.now->failure.empty()) {
            Problem& p = add("pipeline_failed", in_.now->failure, "restart the daemon; the log says more");
            p.failed = true;
            p.lasts = {};
        }
        if (!in_.last_run_failure.empty()) {
            add("run_failed", "the last run failed", in_.last_run_failure).lasts = {};
        }
        if (in_.now->run && in_.before->run && in_.now->total.datagrams.received == 0 &&
            in_.now->sources.sources.empty()) {
            add("no_data", "a run is in progress and nothing has come yet",
                "check the boards' power, the address and port they send to, and the firewall");
        }
    }

    void datagrams() {
        const DatagramLedger& now = in_.now->total.datagrams;
        const DatagramLedger& before = in_.before->total.datagrams;
        const double limit = in_.configuration->health.max_loss_fraction;
        const std::uint64_t received = more(now.received, before.received);
        const std::uint64_t lost = more(now.lost, before.lost);
        if (lost > 0 && fraction(lost, lost + received) > limit) {
            add("datagrams_lost", counted(lost, lost + received, "datagram") + " lost" + worst_source(),
                "check cables, switch and network card, and the drops of the kernel");
        }
        if (const auto n = more(now.dropped_kernel, before.dropped_kernel); n > 0) {
            add("kernel_drops",
                "the kernel dropped " + counted(n, "datagram") + ": the socket buffer ran over",
                "raise net.core.rmem_max and receive.receive_buffer_bytes, or spread the sources over more "
                "sockets");
        }
        if (const auto n = more(now.dropped_no_buffer, before.dropped_no_buffer); n > 0) {
            add("no_free_batch", counted(n, "datagram") + " dropped: no free batch",
                "what comes is more than can be processed or written: see stages and queues; a higher "
                "receive.batch_count bridges short spells");
        }
        if (const auto n = more(now.malformed, before.malformed); n > 0 && fraction(n, received) > limit) {
            add("malformed_datagrams", counted(n, received, "datagram") + " malformed",
                "check receive.framing, and who else sends to this port");
        }
    }

    [[nodiscard]] std::string worst_source() const {
        const auto& now = in_.now->sources.sources;
        const auto& before = in_.before->sources.sources;
        std::uint64_t most = 0;
        std::size_t worst = 0;
        for (std::size_t i = 0; i < now.size(); ++i) {
            const std::uint64_t lost_before = i < before.size() ? before[i].lost.value_or(0) : 0;
            const std::uint64_t lost = more(now[i].lost.value_or(0), lost_before);
            if (lost > most) {
                most = lost;
                worst = i;
            }
        }
        if (most == 0) return "";
        return fmt::format(", {} of them from {}", most, name_of_source(now[worst], bare()));
    }

    void frames() {
        const gpu::FrameCounts& now = in_.now->total.frames;
        const gpu::FrameCounts& before = in_.before->total.frames;
        const double limit = in_.configuration->health.max_loss_fraction;
        const std::uint64_t received = more(now.received, before.received);
        const std::uint64_t invalid = more(now.bad_marker + now.bad_address + now.bad_time,
                                           before.bad_marker + before.bad_address + before.bad_time);
        const auto above = [&](std::uint64_t n) { return n > 0 && fraction(n, received) > limit; };
        if (above(invalid)) {
            add("invalid_frames", counted(invalid, received, "frame") + " invalid",
                "check frame.head_marker, frame.tail_marker and the scanner description against the boards");
        }
        if (const auto n = more(now.late, before.late); above(n)) {
            add("late_frames", counted(n, received, "frame") + " too late to be paired",
                "see the skew of the sources; raise watermark.max_disorder_us if the network reorders");
        }
        if (const auto n = more(now.time_jump, before.time_jump); above(n)) {
            add("time_jumps", counted(n, received, "frame") + " far from the time of their source",
                "check clock and common reset of the boards");
        }
        if (in_.now->sources.behind_watermark) {
            add("sources_behind", "the sources agree on a time that is over: their frames are late",
                "the boards were reset; stop and start the run");
        }
        if (in_.now->given_up > in_.before->given_up) {
            add("sources_given_up", "more than pipeline.max_pending_singles wait for slow sources: given up",
                "see which source lags; raise pipeline.max_pending_singles if it is to be waited for");
        }
    }

    void source(std::uint32_t i) {
        const SourceStatus& s = in_.now->sources.sources[i];
        const std::int64_t now_ns = in_.taken.time_since_epoch() / nanoseconds(1);
        const std::string name = name_of_source(s, bare());
        const double off_ms = std::abs(static_cast<double>(s.skew.value_or(0))) * in_.scanner->tick_ps * 1e-9;
        switch (s.state) {
            case SourceState::active:
            case SourceState::ended:
                break;
            case SourceState::silent: {
                // A dark board that sends heartbeats is well.
                const auto timeout_ns =
                    std::int64_t{in_.configuration->watermark.source_timeout_ms} * 1'000'000;
                if (s.last_seen && now_ns - *s.last_seen < timeout_ns) break;
                const char* advice = "check its power and cable";
                if (s.last_seen) {
                    const double seconds = static_cast<double>(now_ns - *s.last_seen) * 1e-9;
                    add("source_silent", fmt::format("{} is silent for {:.1f} s", name, seconds), advice, i);
                } else {
                    add("source_silent", name + " is silent since the daemon started", advice, i);
                }
                break;
            }
            case SourceState::lagging:
                add("source_lagging", fmt::format("{} lags {:.0f} ms behind the others", name, off_ms),
                    "its frames come too late to be paired: check its clock and its link", i);
                break;
            case SourceState::leading:
                add("source_leading", fmt::format("{} is {:.0f} ms ahead of the others", name, off_ms),
                    "its frames are not used: check its clock, or reset all boards together", i);
                break;
            case SourceState::jumping:
                add("source_jumping", name + " jumps in time", "check its clock and its reset", i);
                break;
        }
    }

    void temperatures() {
        const double limit = in_.configuration->health.max_temperature_C;
        constexpr double margin = 2;
        for (std::uint32_t bdm = 0; bdm < in_.scanner->geometry.bdm_count; ++bdm) {
            const auto t = module_temperature(*in_.now, in_.scanner->geometry, bdm);
            if (!t || *t <= limit - (raised("temperature_high", bdm) ? margin : 0)) continue;
            add("temperature_high", fmt::format("module {} is at {:.1f} C, above {:g} C", bdm, *t, limit),
                "check its cooling", bdm);
        }
    }

    void disk() {
        if (in_.written && in_.written->stalls > in_.stalls_before) {
            add("disk_slow", "the disk does not keep up: every list-mode block waited for it",
                "find what else uses it; a higher listmode.queue_blocks bridges short spells");
        }
        if (in_.capture && !in_.capture->failure.empty()) {
            add("capture_incomplete", "the raw capture failed", in_.capture->failure);
        } else if (in_.capture && in_.capture->counts.dropped > in_.capture_dropped_before) {
            add("capture_incomplete",
                counted(in_.capture->counts.dropped, "datagram") + " missing from the raw capture",
                "the disk is too slow for listmode.write_raw; the list-mode is whole");
        }
        if (!in_.disk) return;
        const std::string path = in_.configuration->data_dir.string();
        if (!in_.disk->space) {
            add("disk_unknown", path + " cannot be looked at", "is it mounted, and readable for the daemon?");
            return;
        }
        constexpr double gib = 0x1p30;
        const auto free = static_cast<double>(in_.disk->space->free_bytes);
        const auto least = static_cast<double>(in_.configuration->health.min_disk_free_bytes);
        if (free < least * (raised("disk_space_low") ? 1.1 : 1)) {
            add("disk_space_low", fmt::format("{:.2f} GiB are free in {}", free / gib, path),
                fmt::format("make room: less than {:.2f} GiB (health.min_disk_free_bytes)", least / gib));
        }
        const auto left = in_.disk->time_left_s();
        const double shortest = in_.configuration->health.min_disk_time_s;
        if (left && *left < shortest * (raised("disk_time_low") ? 1.25 : 1)) {
            add("disk_time_low", fmt::format("{} is full in {:.0f} s at the present rate", path, *left),
                "make room, or stop the run in time: a full disk ends it");
        }
    }

    void latency() {
        const double limit = in_.configuration->health.max_latency_ms;
        if (in_.latency.samples == 0) return;
        if (in_.latency.p99_ms <= limit * (raised("latency_high") ? 0.8 : 1)) return;
        add("latency_high",
            fmt::format("one datagram of 100 takes more than {:.0f} ms to the disk", in_.latency.p99_ms),
            "see stages and queues for what holds it up, and the sources for one that lags");
    }

    void stages() {
        for (std::uint32_t i = 0; i < in_.stages.size(); ++i) {
            const StageState& s = in_.stages[i];
            if (s.activity != Activity::stalled) continue;
            const bool writes = std::string_view(s.name).starts_with("writer");
            add("stage_stalled", fmt::format("{} has stood still for {:.0f} s", s.name, s.stands_s),
                writes ? "the disk does not answer"
                       : "the stages behind it may hold it up; the log says more",
                i)
                .failed = true;
        }
    }

    [[nodiscard]] bool bare() const { return in_.configuration->receive.framing == "bare"; }

    const HealthReading& in_;
    const Health& health_;
    std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> find_problems(const HealthReading& reading, const Health& health) {
    return Finder(reading, health).find();
}

std::string name_of_source(const SourceStatus& s, bool bare) {
    if (!bare) return fmt::format("source {}", s.id);
    return fmt::format("source {}.{}.{}.{}:{}", s.address >> 24, s.address >> 16 & 0xFF,
                       s.address >> 8 & 0xFF, s.address & 0xFF, s.port);
}

std::optional<double> module_temperature(const AcquisitionSnapshot& now, const config::Geometry& g,
                                         std::uint32_t bdm) {
    if (!now.histograms) return {};
    std::int64_t sum = 0;
    std::uint64_t count = 0;
    for (std::size_t unit = std::size_t{bdm} * g.du_count; unit < (bdm + std::size_t{1}) * g.du_count;
         ++unit) {
        sum += now.histograms->temperature_sum_16ths[unit];
        count += now.histograms->temperature_count[unit];
        if (!now.histograms_before) continue;
        sum -= now.histograms_before->temperature_sum_16ths[unit];
        count -= now.histograms_before->temperature_count[unit];
    }
    if (count == 0) return {};
    return static_cast<double>(sum) / 16 / static_cast<double>(count);
}

}  // namespace petacq::daemon
