#include "daemon/replay.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/json_file.hpp"
#include "daemon/acquisition/acquisition.hpp"
#include "daemon/run/run.hpp"
#include "daemon/service/settings.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/progress_line.hpp"
#include "daemon/system/quantity_text.hpp"
#include "net/pcap/replayer.hpp"

namespace petacq::daemon {

namespace {

constexpr std::chrono::milliseconds poll_interval{2};

volatile std::sig_atomic_t interrupted = 0;

/// run.json of the run whose directory holds the capture; an empty object if there is none.
nlohmann::json run_json_beside(const ReplayOptions& options) {
    const auto beside = std::filesystem::path(options.files.front()).parent_path() / "run.json";
    if (options.whole || !std::filesystem::exists(beside)) return nlohmann::json::object();
    nlohmann::json run = config::read_json_file(beside, config::max_run_json_bytes);
    return run.is_object() ? run : nlohmann::json::object();
}

RequestedInterval interval_of(const ReplayOptions& options, const nlohmann::json& beside) {
    RequestedInterval interval{options.start, options.stop, {}, {}};
    // The run.json of a run that was cut off has no end: take all data then.
    const bool says = beside.contains("taken") && beside.at("taken").is_object();
    const nlohmann::json& taken = says ? beside.at("taken") : beside;
    const auto number = [](const nlohmann::json& in, const char* key) -> std::optional<std::uint64_t> {
        if (!in.contains(key) || !in.at(key).is_number_unsigned()) return {};
        return in.at(key).get<std::uint64_t>();
    };
    // The boards of a run that ended at time 0 never had a time that counts: its capture shows why.
    if (number(taken, "stop_ticks") == 0U) return interval;
    if (!interval.start) interval.start = number(taken, "start_ticks");
    if (!interval.stop) interval.stop = number(taken, "stop_ticks");
    // A run that was started before its boards sent takes an interval that is wider than its coverage.
    if (says) interval.covered_from = number(beside, "start_ticks");
    return interval;
}

std::vector<std::uint16_t> ports_of(const config::Configuration& configuration) {
    std::vector<std::uint16_t> ports;
    for (const config::Socket& socket : configuration.receive.sockets) {
        if (socket.port == 0) return {};  // any port
        ports.push_back(socket.port);
    }
    return ports;
}

void check(const config::Configuration& configuration, const ReplayOptions& options) {
    if (options.start && options.stop && *options.start > *options.stop) {
        throw config::Error("--from-ticks " + std::to_string(*options.start) + " is above --to-ticks " +
                            std::to_string(*options.stop));
    }
    std::error_code ignored;
    for (const std::string& file : options.files) {
        const auto directory = std::filesystem::path(file).parent_path();
        if (options.id &&
            std::filesystem::equivalent(directory, configuration.data_dir / *options.id, ignored)) {
            throw config::Error(file + ": is in the directory of run " + *options.id +
                                ", which already exists; choose another --run");
        }
    }
}

/// Opens the captures.
std::unique_ptr<net::Replayer> open_replayer(const ReplayOptions& options, const Inputs& inputs,
                                             Assembly& assembly) {
    try {
        auto replayer = std::make_unique<net::Replayer>(
            options.files, receiver_options(inputs.configuration, inputs.scanner, inputs.foreign).at(0),
            ports_of(inputs.configuration), assembly.pool, assembly.filled.lane(0));
        assembly.acquisition.replay = true;
        return replayer;
    } catch (const std::exception& e) {
        throw config::Error(e.what());
    }
}

/// When the data of the captures were taken, as far as their packets tell.
std::optional<std::chrono::system_clock::time_point> start_of(const net::Replayer& replayer) {
    const auto first = replayer.first_time_ns();
    if (!first) return std::nullopt;
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(*first)));
}

/// The operator's data of the run that recorded this capture.
OperatorData operator_data_of(const nlohmann::json& beside, const RunRequest& request) {
    if (!beside.contains("operator")) return {};
    try {
        return operator_data(beside.at("operator"),
                             request.started.value_or(std::chrono::system_clock::now()));
    } catch (const std::invalid_argument& error) {
        throw config::Error("the run.json beside " + request.replayed.front() +
                            ": operator: " + error.what());
    }
}

std::unique_ptr<Run> open_run(const Assembly& assembly, const ReplayOptions& options,
                              const nlohmann::json& beside, const net::Replayer& replayer) {
    RunRequest request;
    request.id = options.id;
    request.start_ticks = options.start;
    request.stop_ticks = options.stop;
    request.replayed = options.files;
    request.started = start_of(replayer);
    request.operator_data = operator_data_of(beside, request);
    return std::make_unique<Run>(assembly.setting, request);
}

class Replay {
  public:
    Replay(const Inputs& inputs, const ReplayOptions& options, const nlohmann::json& beside)
        : assembly_(inputs, 1, {}, false),
          replayer_(open_replayer(options, inputs, assembly_)),
          run_(open_run(assembly_, options, beside, *replayer_)),
          id_(run_->id()),
          path_(run_->path().string()),
          configuration_(inputs.configuration),
          acquisition_(assembly_.acquisition, assembly_.tracker, std::move(assembly_.backend.pipeline),
                       assembly_.pool, assembly_.filled, {},
                       [this](FinishedRun finished) { finished_.set_value(std::move(finished)); }) {}

    /// Returns the exit status.
    int run(const RequestedInterval& interval) {
        log_info("replay into run {}: {} ({})", id_, assembly_.setting.backend,
                 assembly_.setting.backend_choice);
        interrupted = 0;
        const auto note = [](int) { interrupted = 1; };
        std::signal(SIGINT, note);
        std::signal(SIGTERM, note);
        acquisition_.begin_run(std::move(run_), interval, [] {});
        acquisition_.start();
        replayer_->start();
        FinishedRun finished = wait_for_end();
        replayer_->stop();  // the run may end before the capture
        acquisition_.stop();
        // A run to the end of a capture that cannot be read to its end is not complete. What follows the stop
        // of a run does not matter to it.
        const std::string& broken = replayer_->failure();
        if (finished.end.reason == Acquisition::end_of_capture && (!broken.empty() || interrupted != 0)) {
            finished.end.reason = broken.empty() ? "interrupted" : broken;
            finished.end.failed = finished.end.failed || !broken.empty();
        }
        note_unread(finished.end.seen.reported);
        std::string failure;
        const Ledger ledger = finished.run->finish(finished.end, failure);
        return report(ledger, finished.end, failure, finished.run->verdict());
    }

  private:
    FinishedRun wait_for_end() {
        std::future<FinishedRun> finished = finished_.get_future();
        ProgressLine progress("replay", replayer_->bytes());
        while (finished.wait_for(poll_interval) != std::future_status::ready) {
            progress.show(replayer_->bytes_read());
            if (interrupted != 0) replayer_->stop();
        }
        return finished.get();
    }

    /// Packets of the captures that say that data are missing.
    void note_unread(std::vector<Problem>& problems) const {
        const net::PcapCounts packets = replayer_->packets();
        if (packets.fragments_incomplete == 0) return;
        problems.push_back({"packets_unread", 0,
                            counted_text(packets.fragments_incomplete, "packet") +
                                " of the captures could not be put together from fragments",
                            "the captures lack fragments: capture without a filter on ports"});
    }

    int report(const Ledger& ledger, const RunEnd& end, const std::string& failure,
               const RunVerdict& verdict) const {
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
        const std::vector<std::string> open = ledger.open_identities();
        for (const std::string& identity : open)
            log_error("run {}: the ledger does not close: {}", id_, identity);
        const net::PcapCounts packets = replayer_->packets();
        log_info("run {}: {} packets read, {} datagrams, {} frames, {:.1f} M frames/s", id_, packets.packets,
                 ledger.datagrams.received, ledger.frames.received,
                 static_cast<double>(ledger.frames.received) / seconds * 1e-6);
        report_captures(packets);
        if (end.covered.ticks() == 0 && ledger.frames.received == 0 && packets.packets > packets.other())
            log_warning("run {}: the captures have no data from {} to {} ticks, which it was to take", id_,
                        end.taken.start, end.taken.end);
        log_info("run {} in {}: {}, {} ({})", id_, path_, records_text(ledger, configuration_), end.reason,
                 open.empty() ? "ledger closed" : "ledger NOT closed");
        for (const RunVerdict::Reason& reason : verdict.reasons)
            log_warning("run {}: {}", id_, reason.message);
        if (failure.empty() && open.empty())
            return verdict.state == RunVerdict::State::bad ? exit_status::bad_data : 0;
        if (failure.empty()) return exit_status::internal_failure;
        log_error("run {} failed: {}", id_, failure);
        return acquisition_.snapshot()->failure.empty() ? exit_status::io_failure
                                                        : exit_status::internal_failure;
    }

    /// What of the captures was not used, and what they lack.
    void report_captures(const net::PcapCounts& packets) const {
        const std::string unused = net::unused_text(packets);
        if (!unused.empty()) log_info("run {}: packets that were not used: {}", id_, unused);
        if (packets.fragments_incomplete > 0)
            log_warning("run {}: the captures lack fragments of {} IP packets", id_,
                        packets.fragments_incomplete);
        if (packets.packets > 0 && packets.other() == packets.packets)
            log_warning("run {}: no packet of the capture is for a port of receive.sockets: {}", id_, unused);
        if (const auto dropped = replayer_->dropped(); dropped && *dropped > 0)
            log_warning("run {}: the program that captured lost {} packets; its capture says so", id_,
                        *dropped);
    }

    Assembly assembly_;
    const std::unique_ptr<net::Replayer> replayer_;
    std::unique_ptr<Run> run_;  ///< until the acquisition takes it
    const std::string id_;
    const std::string path_;
    const config::Configuration& configuration_;
    std::promise<FinishedRun> finished_;
    Acquisition acquisition_;
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace

int replay(const Inputs& inputs, const ReplayOptions& options) {
    check(inputs.configuration, options);
    const nlohmann::json beside = run_json_beside(options);
    return Replay(inputs, options, beside).run(interval_of(options, beside));
}

}  // namespace petacq::daemon
