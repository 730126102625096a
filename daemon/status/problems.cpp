#include "daemon/status/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/host_name.hpp>
#include <cmath>
#include <string_view>
#include <vector>

#include "daemon/run/problem.hpp"
#include "daemon/status/document_detector.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/system/quantity_text.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

namespace {

/// A start takes a few syncs, and with a raw capture some detector time.
constexpr std::chrono::seconds longest_start{3};

/// Growth since the previous reading.
std::uint64_t more(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

class Finder {
  public:
    explicit Finder(const Observation& seen)
        : seen_(seen), acquisition_(*seen.now->acquisition), acquisition_before_(*seen.before->acquisition) {}

    std::vector<Problem> find() {
        failures();
        groups();
        ledger();
        for (Problem& problem : find_source_problems(seen_))
            found_.push_back(std::move(problem));
        for (Problem& problem : find_network_problems(seen_))
            found_.push_back(std::move(problem));
        temperatures();
        detector();
        seconds();
        run_files();
        peer();
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

    void groups() {
        const std::vector<net::Membership>& all = seen_.now->groups;
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            if (all[i].trouble.empty()) continue;
            add("multicast_not_joined",
                "multicast group " + all[i].group + " is not joined: " + all[i].trouble,
                "its boards cannot be heard: check the interface (ip -brief address); the daemon joins again "
                "by itself",
                i)
                .is_one_of("multicast groups are not joined", all[i].group, 0);
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

    /// What the growth of the ledger says.
    void ledger() {
        LedgerView view{seen_.configuration().health.max_loss_fraction};
        view.raised = [&](const char* code) { return raised(code); };
        view.lost_by = worst_source([](const SourceStatus& s) { return s.lost.value_or(0); });
        view.repeated_by = worst_source([](const SourceStatus& s) { return s.sequence.repeated; });
        view.batches_waited = seen_.now->batch_waits > seen_.before->batch_waits;
        view.unknown_sender = latest_unknown_sender();
        view.sources_replaced = acquisition_.sources.replaced > acquisition_before_.sources.replaced;
        view.gave_up = acquisition_.given_up > acquisition_before_.given_up;
        view.frames_wanted = acquisition_.run && acquisition_before_.run;
        Ledger growth = acquisition_.total - acquisition_before_.total;
        growth.datagrams.dropped_kernel = dropped_for_room(seen_, growth.datagrams.dropped_kernel);
        // Nothing is processed before a valid frame has told the time of the detector.
        if (growth.frames.received == 0) {
            growth.frames.received = growth.frames.bad_marker = invalid_frames_arrived(seen_);
            view.cause_known = false;
        }
        for (Problem& problem : find_ledger_problems(growth, view))
            found_.push_back(std::move(problem));
        if (acquisition_.sources.behind_watermark) {
            add("sources_behind",
                "the sources agree on an earlier time than that of the run: their frames are late",
                "stop the run and start another");
        }
    }

    [[nodiscard]] std::string latest_unknown_sender() const {
        if (seen_.now->unknown_senders.empty()) return "";
        const net::UnknownSender& s = seen_.now->unknown_senders.front();
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
                *t > limit ? fmt::format("BDM {} is at {:.1f} C, above {:g} C", bdm, *t, limit)
                           : fmt::format("BDM {} was above {:g} C and is at {:.1f} C, not yet below {:g} C",
                                         bdm, limit, *t, limit - margin),
                "check the cooling", bdm)
                .is_one_of(fmt::format("BDMs above {:g} C", limit), fmt::to_string(bdm), *t);
        }
        for (std::size_t i = first; i < found_.size() && !all_above; ++i)
            found_[i].several += fmt::format(", or not yet below {:g} C", limit - margin);
    }

    void detector() {
        if (!acquisition_.detector_faults) return;
        for (const DetectorFault& fault : *acquisition_.detector_faults)
            found_.push_back(detector_problem(fault));
    }

    void seconds() {
        if (acquisition_.pace.stalls <= acquisition_before_.pace.stalls) return;
        add("seconds_slow",
            fmt::format("the acquisition waited for the sums of seconds, {} of which wait",
                        acquisition_.pace.waiting),
            "a multiples_policy that does not ask which pairs are good takes less; so does a host with more "
            "cores or faster ones");
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

    void peer() {
        if (!seen_.now->peer || !seen_.now->peer->is_missing(seen_.now->taken) || !seen_.run->current) return;
        const PeerState& peer = *seen_.now->peer;
        const std::string join =
            fmt::format("`petctl --hosts {}+{} join`", boost::asio::ip::host_name(), peer.host);
        std::string does;
        std::string advice;
        if (peer.situation == PeerSituation::unreachable) {
            does = fmt::format(
                "cannot be asked for {}: {}",
                duration_text(std::chrono::duration<double>(seen_.now->taken - peer.heard).count()),
                peer.answer.failure);
            advice = fmt::format("start petacqd there, or mend the way to {}; then {}", peer.url, join);
        } else if (peer.situation == PeerSituation::other_run) {
            does = "records run " + peer.answer.run;
            advice = fmt::format("stop that run there, then {}", join);
        } else if (peer.answer.run.empty()) {
            does = "has no run";
            advice = join + " lets it take part again";
        } else {
            does = fmt::format("has its run {}, and records nothing ({})", peer.answer.run,
                               peer.answer.recording);
            advice = fmt::format("its page says why: {}", peer.url);
        }
        add("peer_missing",
            fmt::format("run {} is recorded by this host alone: {} {}", seen_.run->current->id, peer.host,
                        does),
            advice)
            .lasts = {};
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
