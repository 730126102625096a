// petacqd: the daemon. Sets everything up in the order of the data's way, runs until told to stop, and tears
// it down in the same order.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/error.hpp"
#include "daemon/acquisition.hpp"
#include "daemon/backend.hpp"
#include "daemon/control_server.hpp"
#include "daemon/http_server.hpp"
#include "daemon/inherited_sockets.hpp"
#include "daemon/journal.hpp"
#include "daemon/logging.hpp"
#include "daemon/notify.hpp"
#include "daemon/reload.hpp"
#include "daemon/replay.hpp"
#include "daemon/service.hpp"
#include "daemon/settings.hpp"
#include "daemon/version.hpp"
#include "daemon/watchdog.hpp"
#include "net/batch.hpp"
#include "net/receiver.hpp"

namespace {

using namespace petacq;
using namespace petacq::daemon;

constexpr int exit_usage = 64;
constexpr int exit_internal = 70;
constexpr int exit_io = 74;
constexpr int exit_configuration = 78;

double mebibytes(std::uint64_t bytes) {
    return static_cast<double>(bytes) / 0x1p20;
}

struct Inputs {
    config::Configuration configuration;
    config::Scanner scanner;
    config::Calibration calibration;
};

Inputs load(const std::string& file) {
    Inputs in;
    in.configuration = config::load_configuration(file);
    in.scanner = config::load_scanner(in.configuration.scanner);
    config::check_against_scanner(in.configuration, in.scanner);
    in.calibration = config::load_calibration(in.configuration.calibration, in.scanner.geometry);
    return in;
}

int run(const Inputs& in, const std::string& file) {
    const config::Configuration& configuration = in.configuration;
    // A file size limit must come back as a failed write, which ends a run in order.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);

    if (const std::string missing = notification_missing(); !missing.empty()) log_warning("{}", missing);
    std::vector<net::ReceiverOptions> sockets = receiver_options(configuration);
    take_inherited_sockets(sockets);
    Backend backend = make_backend(configuration, in.scanner, in.calibration);
    std::unique_ptr<gpu::Pipeline> pipeline = std::move(backend.pipeline);
    net::BatchPool pool(configuration.receive.batch_count, configuration.receive.batch_bytes,
                        std::move(backend.memory));
    net::BatchQueue filled(pool.count(), sockets.size(), 0);
    log_info("batch pool: {} batches, {:.1f} MiB ({})", pool.count(),
             mebibytes(pool.count() * pool.batch_bytes()), pool.memory_description());

    RunSetting setting;
    setting.pool = &pool;
    setting.configuration = std::make_shared<const config::Configuration>(configuration);
    setting.scanner = &in.scanner;
    setting.calibration_sha256 = in.calibration.sha256;
    setting.backend = pipeline->description();
    const std::uint64_t pipeline_bytes = pipeline->memory_bytes();
    log_info("pipeline: {} ({}), at most {:.1f} MiB", setting.backend, backend.choice,
             mebibytes(pipeline_bytes));
    const auto writers = configuration.listmode.write_singles ? 2U : 1U;
    log_info("list-mode: {:.1f} MiB of block buffers",
             mebibytes(std::uint64_t{configuration.listmode.queue_blocks} *
                       configuration.listmode.block_bytes * writers));

    std::vector<std::unique_ptr<net::Receiver>> receivers;
    std::vector<const net::Receiver*> receivers_seen;
    std::vector<const net::ReceiverCounters*> receiver_counters;
    for (const net::ReceiverOptions& o : sockets) {
        receivers.push_back(std::make_unique<net::Receiver>(o, pool, filled));
        const net::Receiver& receiver = *receivers.back();
        receivers_seen.push_back(&receiver);
        receiver_counters.push_back(&receiver.counters());
        log_info("receiving on {}:{}, socket buffer {:.1f} MiB", o.address, receiver.port(),
                 mebibytes(receiver.receive_buffer_bytes()));
    }

    boost::asio::io_context io(1);
    int status = 0;
    const auto leave = [&] { io.stop(); };
    Service service(io, setting, pool, pipeline_bytes, receivers_seen, [&] {
        status = exit_internal;
        leave();
    });
    const TrackerOptions tracker = tracker_options(configuration, in.scanner, in.calibration);
    Acquisition acquisition(acquisition_options(configuration, tracker), tracker, std::move(pipeline), pool,
                            filled, receiver_counters,
                            [&](FinishedRun finished) { service.run_finished(std::move(finished)); });
    service.measure_randoms(std::move(backend.randoms));
    service.attach(acquisition);

    ControlOptions control_options;
    control_options.socket = configuration.control.socket;
    control_options.socket_mode =
        static_cast<mode_t>(std::stoul(configuration.control.socket_mode, nullptr, 8));
    control_options.group = configuration.control.group;
    control_options.max_clients = configuration.control.max_clients;
    control_options.max_request_bytes = configuration.control.max_request_bytes;
    control_options.send_buffer_bytes = configuration.control.send_buffer_bytes;
    ControlServer control(io, service, control_options);

    std::optional<HttpServer> http;
    if (!configuration.http.listen.empty()) {
        http.emplace(http_options(configuration.http), in.scanner.geometry,
                     configuration.http.allow_control ? control_through(io, service) : HttpControl{});
        log_info("http: listening on {}, port {}", configuration.http.listen, http->port());
    }

    // The second signal does not wait for the disk any more.
    boost::asio::signal_set signals(io, SIGINT, SIGTERM);
    bool told = false;
    std::function<void()> wait_for_signal = [&] {
        signals.async_wait([&](boost::system::error_code error, int signal) {
            if (error) return;
            const char* name = signal == SIGINT ? "SIGINT" : "SIGTERM";
            log_info("{}: {}", name, told ? "leaving at once" : "stopping");
            if (told) {
                status = exit_io;
                return leave();
            }
            told = true;
            notify_stopping();
            wait_for_signal();
            service.shut_down(name, leave);
        });
    };
    wait_for_signal();

    boost::asio::signal_set hangups(io, SIGHUP);
    std::function<void()> wait_for_hangup = [&] {
        hangups.async_wait([&](boost::system::error_code error, int) {
            if (error || told) return;
            notify_reloading();
            reload_configuration(file, setting);
            notify_ready();
            wait_for_hangup();
        });
    };
    wait_for_hangup();

    for (const auto& receiver : receivers) {
        receiver->start();
        for (const std::string& warning : receiver->warnings())
            log_warning("{}", warning);
    }
    acquisition.start();
    log_info("petacqd {} ready: scanner {}, {} crystals, control socket {}", version, in.scanner.name,
             in.scanner.geometry.crystal_count(), configuration.control.socket);

    StatusNotifier notifier;
    const auto tell = [&](const nlohmann::json& document) {
        notifier.tell(document);
        if (!http) return;
        const auto seen = acquisition.snapshot();
        http->publish({document, seen->histograms, seen->histograms_taken});
    };
    tell(service.status());
    service.on_status(tell);
    notify_ready();
    std::optional<Watchdog> watchdog;
    if (const auto interval = watchdog_interval()) {
        watchdog.emplace(
            io, *interval, [&] { return service.stage_states(); }, notify_watchdog);
    }
    io.run();

    // The last answers leave: a client that waits for the end of a run hears of it, and who watches the
    // status of a failure.
    if (status == exit_internal) control.tell_subscribers();
    io.restart();
    io.run_for(std::chrono::milliseconds(100));
    control.close();
    if (http) http->close();
    io.restart();
    io.poll();
    for (const auto& receiver : receivers)
        receiver->stop();
    acquisition.stop();
    if (status == 0 && service.failed()) status = exit_io;
    log_info("petacqd stopped");
    return status;
}

/// With which the journal knows a line of stderr for an error.
const char* error_prefix() {
    return is_journal_stream(STDERR_FILENO) ? "<3>" : "";
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"petacqd: turns the UDP stream of a PET scanner into coincidence list-mode"};
    app.set_version_flag("--version", std::string("petacqd ") + version);
    std::string file;
    bool check = false;
    ReplayOptions replay_options;
    app.add_option("-c,--config", file, "Configuration (JSON; docs/configuration.md)")->required();
    app.add_flag("--check", check, "Check configuration, scanner description and calibration, and exit");
    CLI::Option* const replay_files =
        app.add_option(
               "--replay", replay_options.files,
               "Instead of receiving, read these pcap files (FILE[,FILE...]) into one run, as fast as "
               "it goes, and exit")
            ->delimiter(',')
            ->excludes("--check");
    app.add_option("--run", replay_options.id, "With --replay: id of the run")->needs(replay_files);
    app.add_option("--from-ticks", replay_options.start,
                   "With --replay: where the run begins; without, as the run.json beside the first file says")
        ->needs(replay_files);
    app.add_option("--to-ticks", replay_options.stop, "With --replay: where it ends; likewise")
        ->needs(replay_files);
    app.add_flag("--whole", replay_options.whole, "With --replay: all there is, whatever run.json says")
        ->needs(replay_files);
    app.footer("Exit status: 0 clean, 64 usage, 70 internal failure, 74 I/O failure, 78 configuration.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const int code = app.exit(e);
        return code == 0 ? 0 : exit_usage;
    }
    try {
        const Inputs in = load(file);
        if (check) {
            std::printf("%s: configuration, scanner %s (%u crystals) and calibration %.12s are good\n",
                        file.c_str(), in.scanner.name.c_str(), in.scanner.geometry.crystal_count(),
                        in.calibration.sha256.c_str());
            return 0;
        }
        const Logging logging(log_level_from(in.configuration.log_level));
        try {
            if (!replay_options.files.empty()) {
                return replay(in.configuration, in.scanner, in.calibration, replay_options);
            }
            return run(in, file);
        } catch (const config::Error&) {
            throw;
        } catch (const std::invalid_argument& e) {
            throw config::Error(e.what());
        } catch (const std::exception& e) {
            log_error("{}", e.what());
            return exit_io;
        }
    } catch (const config::Error& e) {
        std::fprintf(stderr, "%spetacqd: %s\n", error_prefix(), e.what());
        return exit_configuration;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%spetacqd: %s\n", error_prefix(), e.what());
        return exit_internal;
    }
}
