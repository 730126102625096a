#include "tools/petbench/live/overload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/base/exit_status.hpp"
#include "daemon/listmode/reader.hpp"
#include "tools/petbench/base/daemon_process.hpp"
#include "tools/petbench/live/faults.hpp"
#include "tools/petbench/live/senders.hpp"

namespace petacq::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Of the status, at a moment of the run.
struct StatusMoment {
    SendClock::time_point at;
    std::int64_t frames = 0;  ///< that the pipeline has processed
    // Datagrams.
    std::int64_t received = 0;
    std::int64_t processed = 0;  ///< of these
    std::int64_t dropped = 0;    ///< by daemon and kernel
    std::int64_t lost = 0;
};

StatusMoment moment_of(DaemonProcess& daemon) {
    const json total = daemon.call("status")["total"];
    const auto count = [&](const char* counter) { return total["datagrams"][counter].get<std::int64_t>(); };
    return {SendClock::now(),
            total["frames"]["received"].get<std::int64_t>(),
            count("received"),
            count("accepted") + count("dropped_no_buffer"),
            count("dropped_no_buffer") + count("dropped_kernel"),
            count("lost")};
}

StatusMoment moment_at(DaemonProcess& daemon, SendClock::time_point time) {
    std::this_thread::sleep_until(time);
    return moment_of(daemon);
}

/// What was lost up to a moment is known when the datagrams that had been received by then are processed; by
/// `patience` at the latest.
std::int64_t lost_until(const StatusMoment& moment, DaemonProcess& daemon, SendClock::time_point patience) {
    StatusMoment now = moment;
    while (now.processed < moment.received && SendClock::now() < patience)
        now = moment_at(daemon, SendClock::now() + std::chrono::milliseconds(10));
    return now.lost;
}

struct Records {
    std::uint64_t count = 0;
    std::uint32_t crc = 0;
    bool complete = false;
};

Records records_of(const fs::path& run) {
    daemon::ListModeReader reader(run / "coincidences.plm");
    while (reader.next()) {
    }
    const daemon::Condition& condition = reader.condition();
    return {condition.records, condition.payload_crc, condition.state == daemon::FileState::complete};
}

void compare_with_replay(OverloadResult& result, const LiveSite& site, const fs::path& run) {
    const int status = replay(site.directory, site.program, run / "raw.pcap", "replayed");
    if (status != exit_status::ok && status != exit_status::bad_data) {  // data with losses may be judged bad
        result.faults.push_back(fmt::format("the replay of the raw capture has exit status {}", status));
        return;
    }
    const Records live = records_of(run);
    const Records again = records_of(site.data / "replayed");
    result.replayed = again.count;
    if (!live.complete || !again.complete || live.count != again.count || live.crc != again.crc) {
        result.faults.push_back(fmt::format("{} coincidences, the replay of the raw capture has {}{}",
                                            live.count, again.count,
                                            live.count == again.count ? " others" : ""));
    }
}

void take_ledger(OverloadResult& result, const json& run, std::uint64_t given_up_slices) {
    const json& datagrams = run["ledger"]["datagrams"];
    result.accepted = datagrams["accepted"].get<std::int64_t>();
    result.dropped_no_buffer = datagrams["dropped_no_buffer"].get<std::int64_t>();
    result.dropped_kernel = datagrams["dropped_kernel"].get<std::int64_t>();
    result.lost = datagrams["lost"].get<std::int64_t>();
    if (const auto capture = run.find("capture"); capture != run.end() && capture->is_object())
        result.capture_dropped = (*capture)["datagrams_dropped"].get<std::uint64_t>();
    result.faults = faults_of(run, given_up_slices, Losses::allowed);
    if (result.accepted + result.lost != static_cast<std::int64_t>(result.sent)) {
        result.faults.push_back(fmt::format("{} datagrams sent, {} accepted and {} lost", result.sent,
                                            result.accepted, result.lost));
    }
}

void measure(OverloadResult& result, DaemonProcess& daemon, std::array<Phase, 3> phases,
             const LiveSite& site) {
    const std::vector<std::uint16_t> ports = daemon.ports();
    daemon.call("start", {{"run", "overload"}});
    const auto start = SendClock::now() + every_thread_has_begun;
    auto sending =
        std::async(std::launch::async, [&] { return send(phases, ports, start, Behind::leave_out); });
    const auto after = [&](double seconds) {
        return start +
               std::chrono::duration_cast<SendClock::duration>(std::chrono::duration<double>(seconds));
    };
    const double end = phases[0].seconds + phases[1].seconds;
    const StatusMoment at_start = moment_at(daemon, after(phases[0].seconds));
    const StatusMoment at_end = moment_at(daemon, after(end));
    const StatusMoment recovered = moment_at(daemon, after(end + 1));
    const std::int64_t lost_before = lost_until(recovered, daemon, after(end + phases[2].seconds));
    const Sent sent = sending.get();
    wait_until_processed(daemon, sent.datagrams);
    const StatusMoment last = moment_of(daemon);

    result.sent = sent.datagrams;
    result.offered = static_cast<double>(sent.phase_frames[1]) / phases[1].seconds;
    result.kept = static_cast<double>(at_end.frames - at_start.frames) /
                  std::chrono::duration<double>(at_end.at - at_start.at).count();
    result.lost_afterwards = std::max(last.dropped - recovered.dropped, last.lost - lost_before);
    daemon.call("stop");
    const auto given_up = daemon.call("status")["queues"]["given_up_slices"].get<std::uint64_t>();
    std::ifstream file(site.data / "overload" / "run.json");
    take_ledger(result, json::parse(file), given_up);
    if (result.lost_afterwards != 0) {
        result.faults.push_back(
            fmt::format("{} datagrams lost later than a second after the overload", result.lost_afterwards));
    }
}

}  // namespace

OverloadResult run_overload(const LiveSite& site, const json& configuration, LiveStream& ordinary,
                            LiveStream& more, const OverloadOptions& o) {
    OverloadResult result;
    const fs::path run = site.data / "overload";
    try {
        DaemonProcess daemon(configuration, site.directory, site.program);
        measure(result, daemon,
                {{{&ordinary, o.rate, o.seconds},
                  {&more, o.rate * o.factor, o.overload_seconds},
                  {&ordinary, o.rate, o.seconds}}},
                site);
    } catch (const daemon::ControlUnavailable& error) {
        result.faults.push_back(fmt::format("the daemon has ended: {}", error.what()));
    }
    if (fs::exists(run / "run.json") && fs::exists(run / "raw.pcap") && result.capture_dropped == 0)
        compare_with_replay(result, site, run);
    fs::remove_all(run);
    fs::remove_all(site.data / "replayed");
    return result;
}

void print(const OverloadOptions& options, const OverloadResult& result) {
    std::string verdict = result.faults.empty() ? "passed" : "failed: ";
    for (std::size_t i = 0; i < result.faults.size(); ++i)
        verdict += (i == 0 ? "" : ", ") + result.faults[i];
    std::printf("overload of %g times for %g s: %.2f M frames/s offered, %.2f M kept, %.2f of %.2f M   %s\n",
                options.factor, options.overload_seconds, result.offered * 1e-6, result.kept * 1e-6,
                result.kept / options.rate, options.rate * 1e-6, verdict.c_str());
    std::printf(
        "  datagrams: %llu sent, %lld accepted, %lld lost (%lld dropped because no batch was free, %lld by "
        "the kernel), %lld of them later than a second after the overload\n",
        static_cast<unsigned long long>(result.sent), static_cast<long long>(result.accepted),
        static_cast<long long>(result.lost), static_cast<long long>(result.dropped_no_buffer),
        static_cast<long long>(result.dropped_kernel), static_cast<long long>(result.lost_afterwards));
    if (result.replayed) {
        std::printf("  list-mode: the replay of the raw capture has %llu coincidences\n",
                    static_cast<unsigned long long>(*result.replayed));
    } else if (result.capture_dropped > 0) {
        std::printf(
            "  list-mode: not compared with a replay, since %llu datagrams are missing from the raw "
            "capture\n",
            static_cast<unsigned long long>(result.capture_dropped));
    }
    std::fflush(stdout);
}

}  // namespace petacq::bench
