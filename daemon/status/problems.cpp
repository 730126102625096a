#include "daemon/status/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "daemon/host/quantity_text.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

namespace {

/// A start takes a few syncs, and with a raw capture some detector time.
constexpr std::chrono::seconds longest_start{3};

struct DetectorAdvice {
    const char* code;
    const char* advice;
    const char* several;  ///< what several modules have in common
};
/// In the order of DetectorFault::Kind.
constexpr std::array detector_advice{
    DetectorAdvice{"detector_time_step", "check the clock; the run may need another time calibration",
                   "modules: their times moved since the start"},
    DetectorAdvice{"detector_gain_step", "check high voltage and temperature",
                   "modules: their photopeaks moved since the start"},
    DetectorAdvice{"detector_few_prompts", "check clock, energies and shielding",
                   "modules have fewer prompts than their singles let expect"},
    DetectorAdvice{"detector_time_off", "check its clock; the time calibration may no longer hold",
                   "modules: their times differ from the reference"},
    DetectorAdvice{"detector_gain_off",
                   "check its high voltage and temperature; the energy calibration may no longer hold",
                   "modules: their photopeaks differ from the reference"},
    DetectorAdvice{"detector_prompts_off", "check clock, energies and shielding",
                   "modules have fewer prompts than the reference lets expect"},
    DetectorAdvice{"detector_unit_silent", "check power, cables and thresholds",
                   "modules have detector units that do not count"},
    DetectorAdvice{"detector_noisy", "raise the threshold of the crystal, or switch it off",
                   "modules have noisy crystals"},
    DetectorAdvice{"boards_out_of_step",
                   "petcal apply --module-ticks does it; or check the common reset of the boards",
                   "modules are out of step with the others"},
    DetectorAdvice{"boards_without_partners", "check the common reset of the boards and its clock",
                   "modules have no coincidences with the others at all"},
};

/// Growth since the previous reading.
std::uint64_t more(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

double fraction(std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// "12 datagrams (0.12 %)"
std::string share_text(std::uint64_t n, std::uint64_t of, const char* what) {
    return fmt::format("{} ({:.3g} %)", counted_text(n, what), 100 * fraction(n, of));
}

class Finder {
  public:
    explicit Finder(const Observation& seen)
        : seen_(seen), acquisition_(*seen.now->acquisition), acquisition_before_(*seen.before->acquisition) {}

    std::vector<Problem> find() {
        failures();
        datagrams();
        frames();
        for (Problem& problem : find_source_problems(seen_))
            found_.push_back(std::move(problem));
        temperatures();
        detector();
        run_files();
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
        return seen_.health->find(code, subject) != nullptr;
    }

    void failures() {
        if (!acquisition_.failure.empty()) {
            Problem& p =
                add("pipeline_failed", acquisition_.failure, "restart the daemon; the log has details");
            p.failed = true;
            p.lasts = {};
        }
        if (const auto& ended = seen_.run->ended; ended && ended->failed)
            add("run_failed", "the last run, " + ended->id + ", failed", ended->reason).lasts = {};
        interrupted_runs();
        if (seen_.run->start_asked && seen_.now->taken - *seen_.run->start_asked > longest_start) {
            const double waited =
                std::chrono::duration<double>(seen_.now->taken - *seen_.run->start_asked).count();
            add("start_delayed", fmt::format("a run was asked for {:.0f} s ago and has not started", waited),
                seen_.run->daemon == DaemonState::starting
                    ? "the disk does not respond"
                    : "no source moves detector time: check the clocks of the boards");
        }
        if (acquisition_.run && acquisition_before_.run && acquisition_.total.datagrams.received == 0 &&
            !anything_heard(acquisition_)) {
            add("no_data", "a run is in progress and no data have arrived",
                "check that the boards have power, the address and port they send to, and the firewall");
        }
    }

    /// One problem for all of them: it names the latest.
    void interrupted_runs() {
        const std::vector<InterruptedRun>& runs = seen_.run->interrupted;
        if (runs.empty()) return;
        const InterruptedRun& latest = runs.back();
        const std::string others = runs.size() > 1 ? fmt::format(" and {} before it", runs.size() - 1) : "";
        add("run_interrupted",
            fmt::format("run {}{} {} interrupted", latest.id, others, runs.size() > 1 ? "were" : "was"),
            fmt::format("`{}` saves what it holds; `petctl acknowledge {}` ends this message",
                        recovery_command(latest), latest.id))
            .lasts = {};
    }

    /// Adds a problem if more than max_loss_fraction of the things are affected.
    void add_share(const char* code, std::uint64_t affected, std::uint64_t all, const char* thing,
                   const std::string& how, const char* advice) {
        constexpr double margin = 0.5;
        const double limit = seen_.configuration().health.max_loss_fraction;
        const double share = fraction(affected, all);
        if (affected == 0 || share <= limit * (raised(code) ? margin : 1)) return;
        add(code,
            share_text(affected, all, thing) + how +
                (share > limit ? "" : fmt::format(", not yet below {:.3g} %", 100 * limit * margin)),
            advice);
    }

    void datagrams() {
        const DatagramLedger& now = acquisition_.total.datagrams;
        const DatagramLedger& before = acquisition_before_.total.datagrams;
        const std::uint64_t received = more(now.received, before.received);
        const std::uint64_t lost = more(now.lost, before.lost);
        add_share("datagrams_lost", lost, lost + received, "datagram",
                  " lost" + worst_source([](const SourceStatus& s) { return s.lost.value_or(0); }),
                  "check cables, switch and network card, and whether the kernel drops datagrams");
        if (const auto n = more(now.repeated, before.repeated); n > 0) {
            add("stream_repeated",
                counted_text(n, "datagram") + " received again" +
                    worst_source([](const SourceStatus& s) { return s.sequence.repeated; }),
                "a stream is being sent a second time: find out what sends it; the copies are not used");
        }
        const std::uint64_t dropped = more(now.dropped_kernel, before.dropped_kernel) +
                                      more(now.dropped_no_buffer, before.dropped_no_buffer);
        if (dropped > 0 && seen_.now->batch_waits > seen_.before->batch_waits) {
            add("no_free_batch",
                counted_text(dropped, "datagram") +
                    " dropped: no batch was free, and the socket buffer overflowed",
                "more data arrive than can be processed or written: see stages and queues; a higher "
                "receive.batch_count bridges short spells");
        } else if (const auto n = more(now.dropped_kernel, before.dropped_kernel); n > 0) {
            add("kernel_drops",
                "the kernel dropped " + counted_text(n, "datagram") + ": the socket buffer overflowed",
                "raise net.core.rmem_max and receive.receive_buffer_bytes, or spread the sources over more "
                "sockets");
        }
        if (const auto n = more(now.unknown_source, before.unknown_source); n > 0) {
            add("unknown_source", counted_text(n, "datagram") + " from unknown senders" + latest_stranger(),
                "petctl sources shows them; list boards among the sources of the scanner description, stop "
                "others");
        }
        const std::uint64_t discarded = more(now.too_many_sources, before.too_many_sources);
        if (discarded > 0 || acquisition_.sources.replaced > acquisition_before_.sources.replaced) {
            add("too_many_sources",
                fmt::format("more than {} senders: {} discarded", SourceTracker::max_sources,
                            counted_text(discarded, "datagram")),
                "list the sources in the scanner description, so that no others are tracked");
        }
        add_share("malformed_datagrams", more(now.malformed, before.malformed), received, "datagram",
                  " malformed", "check receive.framing, and what else sends to this port");
    }

    [[nodiscard]] std::string latest_stranger() const {
        if (seen_.now->strangers.empty()) return "";
        const net::Stranger& s = seen_.now->strangers.front();
        const std::string sender = net::to_text(s.sender);
        return s.id ? fmt::format(", the latest is id {} from {}", *s.id, sender)
                    : ", the latest is " + sender;
    }

    /// ", 12 of them from source 3": the source for which `count` has grown most.
    template <class Count>
    [[nodiscard]] std::string worst_source(const Count& count) const {
        const auto& now = acquisition_.sources.sources;
        const auto& before = acquisition_before_.sources.sources;
        std::uint64_t most = 0;
        std::size_t worst = 0;
        for (std::size_t i = 0; i < now.size(); ++i) {
            const std::uint64_t grown = more(count(now[i]), i < before.size() ? count(before[i]) : 0);
            if (grown > most) {
                most = grown;
                worst = i;
            }
        }
        if (most == 0) return "";
        return fmt::format(", {} of them from {}", most, "source " + source_name(seen_, now[worst]));
    }

    void frames() {
        const gpu::FrameCounts& now = acquisition_.total.frames;
        const gpu::FrameCounts& before = acquisition_before_.total.frames;
        const std::uint64_t received = more(now.received, before.received);
        const std::uint64_t invalid = more(now.bad_marker + now.bad_address + now.bad_time,
                                           before.bad_marker + before.bad_address + before.bad_time);
        add_share(
            "invalid_frames", invalid, received, "frame", " invalid",
            "check frame.head_marker, frame.tail_marker and the scanner description against the boards");
        add_share("late_frames", more(now.late, before.late), received, "frame", " too late to be paired",
                  "look at the skew of the sources; raise watermark.max_disorder_us if the network reorders "
                  "datagrams");
        add_share("time_jumps", more(now.time_jump, before.time_jump), received, "frame",
                  " far from the time of their source",
                  "check the clocks and the common reset of the boards");
        if (acquisition_.sources.behind_watermark) {
            add("sources_behind",
                "the sources agree on an earlier time than that of the run: their frames are late",
                "stop the run and start another");
        }
        if (acquisition_.given_up > acquisition_before_.given_up) {
            add("sources_given_up",
                "more than pipeline.max_pending_singles singles waited for slow sources: they wait no longer",
                "find the source that lags; raise pipeline.max_pending_singles to wait longer for it");
        }
    }

    void temperatures() {
        const double limit = seen_.configuration().health.max_temperature_C;
        constexpr double margin = 2;
        bool all_above = true;
        const std::size_t first = found_.size();
        for (std::uint32_t bdm = 0; bdm < seen_.scanner().geometry.bdm_count; ++bdm) {
            const auto t = module_temperature(acquisition_, seen_.scanner().geometry, bdm);
            if (!t || *t <= limit - (raised("temperature_high", bdm) ? margin : 0)) continue;
            all_above = all_above && *t > limit;
            add("temperature_high",
                *t > limit
                    ? fmt::format("module {} is at {:.1f} C, above {:g} C", bdm, *t, limit)
                    : fmt::format("module {} was above {:g} C and is at {:.1f} C, not yet below {:g} C", bdm,
                                  limit, *t, limit - margin),
                "check the cooling", bdm)
                .is_one_of(fmt::format("modules above {:g} C", limit), fmt::to_string(bdm), *t);
        }
        for (std::size_t i = first; i < found_.size() && !all_above; ++i)
            found_[i].several += fmt::format(", or not yet below {:g} C", limit - margin);
    }

    void detector() {
        if (!acquisition_.detector_faults) return;
        for (const DetectorFault& fault : *acquisition_.detector_faults) {
            const DetectorAdvice& known = detector_advice.at(static_cast<std::size_t>(fault.kind));
            add(known.code, fault.text(), known.advice, fault.bdm)
                .is_one_of(known.several, fmt::to_string(fault.bdm), std::abs(fault.size));
        }
    }

    void run_files() {
        if (!seen_.now->run) return;
        // Counters of another run do not apply to this one.
        const bool same = seen_.before->run && seen_.before->run->id == seen_.now->run->id;
        if (seen_.now->run->written.stalls > (same ? seen_.before->run->written.stalls : 0)) {
            add("disk_slow", "the disk does not keep up: every list-mode block waited for it",
                "find out what else uses the disk; a higher listmode.queue_blocks bridges short spells");
        }
        if (const std::string& failure = seen_.now->run->ledger_series_failure; !failure.empty())
            add("ledger_series_incomplete", "the ledger over time of the run failed", failure);
        if (!seen_.now->run->capture) return;
        const CaptureStatus& capture = *seen_.now->run->capture;
        const std::uint64_t dropped_before =
            same && seen_.before->run->capture ? seen_.before->run->capture->counts.dropped : 0;
        if (!capture.failure.empty()) {
            add("capture_incomplete", "the raw capture failed", capture.failure);
        } else if (capture.counts.dropped > dropped_before) {
            add("capture_incomplete",
                counted_text(capture.counts.dropped, "datagram") + " missing from the raw capture",
                "the disk is too slow for listmode.write_raw; the list-mode is complete");
        }
    }

    void disk() {
        const std::string path = seen_.configuration().data_dir.string();
        const DiskStatus& disk = seen_.now->disk;
        if (!disk.space) {
            add("disk_unknown", "the free space of " + path + " is unknown",
                "is it mounted, and may the daemon read it?");
            return;
        }
        const auto free = static_cast<double>(disk.space->free_bytes);
        const auto least = static_cast<double>(seen_.configuration().health.min_disk_free_bytes);
        constexpr double more_room = 1.1;
        if (free < least * (raised("disk_space_low") ? more_room : 1)) {
            add("disk_space_low", fmt::format("{} are free in {}", scaled_text(free, "B"), path),
                free < least ? fmt::format("make room: less than {} (health.min_disk_free_bytes)",
                                           scaled_text(least, "B"))
                             : fmt::format("make more room: not yet {}, a tenth more than the threshold",
                                           scaled_text(least * more_room, "B")));
        }
        const auto left = disk.time_left_s();
        const double shortest = seen_.configuration().health.min_disk_time_s;
        constexpr double longer = 1.25;
        if (left && *left < shortest * (raised("disk_time_low") ? longer : 1)) {
            add("disk_time_low",
                fmt::format("{} will be full in {} at the present rate", path, duration_text(*left)) +
                    (*left < shortest ? "" : ", not yet above " + duration_text(shortest * longer)),
                "make room, or stop the run in time: a full disk stops it");
        }
    }

    void latency() {
        const double limit = seen_.configuration().health.max_latency_ms;
        if (!seen_.now->run || seen_.now->run->latency.samples == 0) return;
        const double p99_ms = seen_.now->run->latency.p99_ms;
        constexpr double margin = 0.8;
        if (p99_ms <= limit * (raised("latency_high") ? margin : 1)) return;
        add("latency_high",
            fmt::format("one datagram in 100 takes more than {:.0f} ms to the disk", p99_ms) +
                (p99_ms > limit ? "" : fmt::format(", not yet below {:g} ms", limit * margin)),
            "stages and queues show what delays it; look for a lagging source, too");
    }

    void stages() {
        for (std::uint32_t i = 0; i < seen_.now->stages.size(); ++i) {
            const StageState& s = seen_.now->stages[i];
            if (s.activity != Activity::stalled) continue;
            const bool writes = std::string_view(s.name).starts_with("writer");
            add("stage_stalled", fmt::format("{} has made no progress for {:.0f} s", s.name, s.stands_s),
                writes ? "the disk does not respond" : "a later stage may block it; the log has details", i)
                .is_one_of("stages make no progress", s.name, s.stands_s)
                .failed = true;
        }
    }

    const Observation& seen_;
    const AcquisitionSnapshot& acquisition_;
    const AcquisitionSnapshot& acquisition_before_;
    std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> find_problems(const Observation& seen) {
    return Finder(seen).find();
}

}  // namespace petacq::daemon
