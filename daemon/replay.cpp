#include "daemon/replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "config/error.hpp"
#include "config/json_file.hpp"
#include "daemon/acquisition.hpp"
#include "daemon/backend.hpp"
#include "daemon/logging.hpp"
#include "daemon/run.hpp"
#include "daemon/settings.hpp"
#include "net/replayer.hpp"

namespace petacq::daemon {

namespace {

constexpr int exit_io = 74;
constexpr int exit_internal = 70;
constexpr auto look_interval = std::chrono::milliseconds(2);

volatile std::sig_atomic_t interrupted = 0;

/// Where the run that a capture stands in began and ended.
RunInterval interval_of(const ReplayOptions& options) {
    RunInterval interval{options.start, options.stop, {}};
    if (options.whole) return interval;
    const auto beside = std::filesystem::path(options.files.front()).parent_path() / "run.json";
    if (!std::filesystem::exists(beside)) return interval;
    const nlohmann::json run = config::read_json_file(beside);
    // A run that was cut off has no end: all there is, then.
    const auto number = [&](const char* key) -> std::optional<std::uint64_t> {
        if (!run.contains(key) || !run.at(key).is_number_unsigned()) return {};
        return run.at(key).get<std::uint64_t>();
    };
    if (!interval.start) interval.start = number("start_ticks");
    if (!interval.stop) interval.stop = number("stop_ticks");
    return interval;
}

std::vector<std::uint16_t> ports_of(const config::Configuration& configuration) {
    std::vector<std::uint16_t> ports;
    for (const config::Socket& socket : configuration.receive.sockets) {
        if (socket.port == 0) return {};  // any
        ports.push_back(socket.port);
    }
    return ports;
}

/// A line on a terminal that is written over.
class Progress {
  public:
    explicit Progress(const net::Replayer& replayer)
        : replayer_(replayer), shown_(isatty(STDERR_FILENO) != 0) {}
    ~Progress() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show() {
        const auto now = std::chrono::steady_clock::now();
        if (!shown_ || now - last_ < std::chrono::milliseconds(500)) return;
        last_ = now;
        const double part = static_cast<double>(replayer_.bytes_read()) /
                            static_cast<double>(std::max<std::uint64_t>(replayer_.bytes(), 1));
        const double spent = std::chrono::duration<double>(now - began_).count();
        const double left = part > 0 ? spent * (1 - part) / part : 0;
        std::fprintf(stderr, "\rreplay: %3.0f %%, %.0f s left\x1b[K", part * 100, left);
    }

  private:
    const net::Replayer& replayer_;
    const bool shown_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point last_;
};

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
            throw config::Error(file + ": stands in the directory of run " + *options.id +
                                ", which would be made; choose another --run");
        }
    }
}

}  // namespace

int replay(const config::Configuration& configuration, const config::Scanner& scanner,
           const config::Calibration& calibration, const ReplayOptions& options) {
    check(configuration, options);
    const RunInterval interval = interval_of(options);
    Backend backend = make_backend(configuration, scanner, calibration);
    std::unique_ptr<gpu::Pipeline> pipeline = std::move(backend.pipeline);
    net::BatchPool pool(configuration.receive.batch_count, configuration.receive.batch_bytes,
                        std::move(backend.memory));
    net::BatchQueue filled(pool.count(), 1, 0);
    std::unique_ptr<net::Replayer> replayer;
    try {
        replayer = std::make_unique<net::Replayer>(options.files, receiver_options(configuration).at(0),
                                                   ports_of(configuration), pool, filled);
    } catch (const std::exception& e) {
        throw config::Error(e.what());
    }

    RunSetting setting;
    setting.configuration = std::make_shared<const config::Configuration>(configuration);
    setting.scanner = &scanner;
    setting.calibration_sha256 = calibration.sha256;
    setting.backend = pipeline->description();
    setting.backend_choice = backend.choice;
    RunRequest request;
    request.id = options.id;
    request.replayed = options.files;
    auto run = std::make_unique<Run>(setting, request);
    const std::string id = run->id();
    const std::string path = run->path().string();

    AcquisitionOptions acquisition_opts =
        acquisition_options(configuration, tracker_options(configuration, scanner, calibration));
    acquisition_opts.replay_clock = &replayer->clock();
    std::promise<FinishedRun> finished_promise;
    std::future<FinishedRun> finished = finished_promise.get_future();
    Acquisition acquisition(acquisition_opts, tracker_options(configuration, scanner, calibration),
                            std::move(pipeline), pool, filled, {&replayer->counters()},
                            [&](FinishedRun end) { finished_promise.set_value(std::move(end)); });
    log_info("replay into run {}: {} ({})", id, setting.backend, backend.choice);

    interrupted = 0;
    const auto note = [](int) { interrupted = 1; };
    std::signal(SIGINT, note);
    std::signal(SIGTERM, note);
    const auto began = std::chrono::steady_clock::now();
    acquisition.begin_run(std::move(run), interval, [] {});
    acquisition.start();
    replayer->start();
    bool told = false;
    {
        Progress progress(*replayer);
        while (finished.wait_for(look_interval) != std::future_status::ready) {
            progress.show();
            if (interrupted != 0) replayer->stop();
            if (told || !replayer->done()) continue;
            // Nothing more comes, and time stands still until what has come has been gone through.
            const auto snapshot = acquisition.snapshot();
            if (snapshot->total.datagrams.received != replayer->counters().datagrams_received.value() ||
                snapshot->total.datagrams.in_flight_at_end != 0) {
                continue;
            }
            const std::string& broken = replayer->failure();
            acquisition.end_run(!broken.empty()    ? broken
                                : interrupted != 0 ? "interrupted"
                                                   : "end of the capture");
            replayer->clock().store(INT64_MAX / 2, std::memory_order_release);
            told = true;
        }
    }
    replayer->stop();  // the interval may end before the capture
    FinishedRun end = finished.get();
    acquisition.stop();
    std::string failure;
    const Ledger ledger = end.run->finish(end.end, failure);
    if (failure.empty()) failure = replayer->failure();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

    const std::vector<std::string> open = ledger.open_identities();
    for (const std::string& identity : open)
        log_error("run {}: the ledger does not close: {}", id, identity);
    const net::PcapCounts packets = replayer->packets();
    log_info("run {}: {} packets read ({} other, {} incomplete), {} datagrams, {} frames, {:.1f} M frames/s",
             id, packets.packets, packets.other, packets.fragments_incomplete, ledger.datagrams.received,
             ledger.frames.received, static_cast<double>(ledger.frames.received) / seconds * 1e-6);
    log_info("run {} in {}: {} prompts, {} delayeds, {} ({})", id, path, ledger.pairs.prompts_found,
             ledger.pairs.delayeds_found, end.end.reason,
             open.empty() ? "ledger closed" : "ledger NOT closed");
    if (failure.empty()) return open.empty() ? 0 : exit_internal;
    log_error("run {} failed: {}", id, failure);
    return acquisition.snapshot()->failure.empty() ? exit_io : exit_internal;
}

}  // namespace petacq::daemon
