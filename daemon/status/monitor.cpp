#include "daemon/status/monitor.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "config/base/sha256.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/status/document_recording.hpp"
#include "daemon/status/held_up.hpp"
#include "daemon/status/problems.hpp"
#include "daemon/status/reason_order.hpp"
#include "daemon/status/status.hpp"
#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

namespace {

/// The id of the source that a problem is about, if it is about one that has an id.
std::optional<std::uint32_t> source_of(const Problem& problem, const Observation& seen) {
    const auto& sources = seen.now->acquisition->sources.sources;
    const bool about_one = std::string_view(problem.code).starts_with("source_");
    const bool has_ids = seen.configuration().receive.framing != config::Framing::bare;
    if (!about_one || !has_ids || problem.subject >= sources.size()) return std::nullopt;
    return sources[problem.subject].id;
}

/// A sender may reach several receivers; it is then one unknown sender.
std::vector<net::UnknownSender> unknown_senders_of(const std::vector<const net::Receiver*>& receivers) {
    std::vector<net::UnknownSender> all;
    for (const net::Receiver* receiver : receivers) {
        for (const net::UnknownSender& s : receiver->unknown_senders()) {
            const auto same = std::find_if(all.begin(), all.end(),
                                           [&](const net::UnknownSender& other) { return s.is_same(other); });
            if (same == all.end()) {
                all.push_back(s);
            } else {
                same->add(s);
            }
        }
    }
    std::sort(all.begin(), all.end(), [](const net::UnknownSender& a, const net::UnknownSender& b) {
        return a.latest_ns > b.latest_ns;
    });
    if (all.size() > net::UnknownSenders::most) all.resize(net::UnknownSenders::most);
    return all;
}

/// Hosts that receive the boards of one scanner list different sources.
std::string sha256_without_sources(const config::Scanner& scanner) {
    nlohmann::json document = config::to_json(scanner);
    document.erase("sources");
    const std::string text = document.dump();
    config::Sha256 sha256;
    sha256.add(std::as_bytes(std::span(text)));
    return sha256.text();
}

/// One line for each kind of reason that has appeared, and for each that has gone.
void log_changes(const std::vector<HealthChange>& changes, const Observation& seen) {
    for (const bool raised : {true, false}) {
        std::vector<const HealthReason*> reasons;
        for (const HealthChange& change : changes)
            if (change.raised == raised) reasons.push_back(&change.reason);
        for (const RankedReason& one : ranked(reasons)) {
            std::vector<const Problem*> problems;
            std::vector<std::uint32_t> sources;
            for (const HealthReason* reason : reasons) {
                if (reason->problem.code != std::string_view(one.code)) continue;
                problems.push_back(&reason->problem);
                if (const auto source = source_of(reason->problem, seen)) sources.push_back(*source);
            }
            if (raised) {
                log_message(one.failed ? LogLevel::error : LogLevel::warning,
                            (one.failed ? "failed: " : "degraded: ") + one.message, sources);
                continue;
            }
            const std::chrono::duration<double> lasted = seen.now->taken - one.since;
            const std::string what = one.count == 1 ? problems.front()->what : one.message;
            log_message(LogLevel::info,
                        fmt::format("recovered: {} after {}; it was: {}", one.code,
                                    duration_text(lasted.count()), what),
                        sources);
        }
    }
}

}  // namespace

const char* name_of(DaemonState state) {
    constexpr std::array words{"idle", "starting", "running", "stopping", "failed"};
    return words.at(static_cast<std::size_t>(state));
}

Monitor::Monitor(const RunSetting& setting, const net::BatchPool& pool, std::uint64_t pipeline_bytes,
                 std::vector<const net::Receiver*> receivers, const Acquisition& acquisition,
                 const RunState& run)
    : setting_(setting),
      pool_(pool),
      pipeline_bytes_(pipeline_bytes),
      receivers_(std::move(receivers)),
      acquisition_(acquisition),
      scanner_sha256_(sha256_without_sources(*setting_.scanner)),
      stages_(receivers_, acquisition) {
    if (const std::string& url = setting_.configuration->peer.url; !url.empty())
        peer_.emplace(url, std::chrono::steady_clock::now());
    read(run);
    daemon_start_ = now_.acquisition;
    space_ = disk_space(setting_.configuration->data_dir);
    read_slow();
    now_.network_earlier = now_.network;
    before_ = latest_observed_ = now_;
}

void Monitor::observe(const RunState& run) {
    read(run);
    read_slow();
    before_ = std::exchange(latest_observed_, now_);
    assess(run);
}

void Monitor::read(const RunState& run) {
    now_.taken = std::chrono::steady_clock::now();
    stages_.show(run.open, run.closing);
    const auto published = acquisition_.snapshot();
    const auto earlier =
        std::exchange(now_.acquisition, with_receivers_of_now(published, receivers_, now_.taken));
    note_arrival(earlier.get(), now_.acquisition != published);
    now_.unknown_senders = unknown_senders_of(receivers_);
    now_.groups.clear();
    for (const net::Receiver* receiver : receivers_) {
        for (net::Membership& one : receiver->memberships())
            now_.groups.push_back(std::move(one));
    }
    now_.samples.clear();
    for (const net::Receiver* receiver : receivers_) {
        for (const net::DatagramSample& sample : receiver->samples())
            now_.samples.push_back(sample);
    }
    now_.free_batches = pool_.free_count();
    now_.batch_waits = pool_.waits();
    now_.log = log_statistics();
    now_.run.reset();
    if (run.open != nullptr)
        now_.run = {run.open->id(),
                    run.open->written(),
                    run.open->latency(),
                    run.open->capture_status(),
                    run.open->ledger_series_failure(),
                    run.open->seconds_bytes()};
    judge_peer(run);
}

void Monitor::hear_peer(PeerAnswer answer) {
    peer_->hear(std::move(answer), std::chrono::steady_clock::now());
}

/// A run that is being stopped needs no other half.
void Monitor::judge_peer(const RunState& run) {
    if (!peer_) return;
    OwnHalf own;
    if (run.current && run.start && run.daemon == DaemonState::running) {
        own.run = run.current->id;
        own.records = now_.acquisition->run_start && !silent(now_);
    }
    now_.peer = peer_->judge(own, now_.taken);
}

/// An acquisition that is held up counts no frames, but what waits for it has arrived.
void Monitor::note_arrival(const AcquisitionSnapshot* earlier, bool held_up) {
    const Ledger& now = now_.acquisition->total;
    const Ledger before = earlier != nullptr ? earlier->total : Ledger{};
    const bool frames = now.frames.received > before.frames.received;
    const bool waiting = held_up && now.datagrams.in_flight_at_end > before.datagrams.in_flight_at_end;
    now_.arrival.any = now_.arrival.any || frames || waiting;
    if (earlier != nullptr && !frames && !waiting) return;
    now_.arrival.latest = now_.taken;
    now_.arrival.latest_utc = std::chrono::system_clock::now();
}

void Monitor::read_slow() {
    progress_.observe(stages_.read(), std::chrono::steady_clock::now());
    now_.stages = progress_.states();
    if (now_.run) {
        write_rate_.observe(now_.run->bytes(), now_.taken);
    } else {
        write_rate_.clear();
    }
    now_.disk = {space_, write_rate_.per_second()};
    now_.network_earlier =
        std::exchange(now_.network, {read_network_counters(), std::chrono::steady_clock::now()});
}

Observation Monitor::observation(const RunState& run) const {
    const AcquisitionSnapshot& start = run.start ? *run.start : *daemon_start_;
    return {&setting_, &run, &now_, &before_, &start, &health_};
}

bool Monitor::assess(const RunState& run) {
    const Observation seen = observation(run);
    const std::vector<HealthChange> changes = health_.observe(find_problems(seen), now_.taken);
    log_changes(changes, seen);
    return !changes.empty();
}

nlohmann::json Monitor::status(const RunState& run) const {
    Installation installation;
    const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - started_;
    installation.uptime_s = uptime.count();
    for (const net::Receiver* receiver : receivers_) {
        installation.ports.push_back(receiver->port());
        installation.cores.push_back(receiver->cores());
    }
    installation.batches = pool_.count();
    installation.pool_bytes = pool_.count() * pool_.batch_bytes();
    installation.pipeline_bytes = pipeline_bytes_;
    installation.scanner_sha256 = scanner_sha256_;
    return make_status(observation(run), installation);
}

}  // namespace petacq::daemon
