// petacqd: the daemon. Sets everything up in the order of the data's way, runs until told to stop, and tears
// it down in the same order.
#include <sys/resource.h>

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
#include "daemon/logging.hpp"
#include "daemon/service.hpp"
#include "daemon/settings.hpp"
#include "daemon/version.hpp"
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

int run(const Inputs& in) {
    const config::Configuration& configuration = in.configuration;
    // A file size limit must come back as a failed write, which ends a run in order.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);

    const std::vector<net::ReceiverOptions> sockets = receiver_options(configuration);
    Backend backend = make_backend(configuration, in.scanner, in.calibration);
    std::unique_ptr<gpu::Pipeline> pipeline = std::move(backend.pipeline);
    net::BatchPool pool(configuration.receive.batch_count, configuration.receive.batch_bytes,
                        std::move(backend.memory));
    net::BatchQueue filled(pool.count(), sockets.size(), 0);
    log_info("batch pool: {} batches, {:.1f} MiB ({})", pool.count(),
             mebibytes(pool.count() * pool.batch_bytes()), pool.memory_description());

    RunSetting setting;
    setting.configuration = &configuration;
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
    for (const net::ReceiverOptions& o : sockets) {
        receivers.push_back(std::make_unique<net::Receiver>(o, pool, filled));
        const net::Receiver& receiver = *receivers.back();
        receivers_seen.push_back(&receiver);
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
    AcquisitionOptions options;
    options.slice_frames = configuration.pipeline.slice_frames;
    options.slice_interval = std::chrono::milliseconds(configuration.pipeline.slice_interval_ms);
    options.max_pending_singles = configuration.pipeline.max_pending_singles;
    options.receive_delay = std::chrono::milliseconds(2 * configuration.receive.flush_interval_ms + 10);
    const TrackerOptions tracker = tracker_options(configuration, in.scanner, in.calibration);
    options.framing = tracker.framing;
    options.max_offset = tracker.max_offset;
    options.max_disorder = tracker.max_disorder;
    options.max_lag = tracker.max_lag;
    options.stop_timeout += std::chrono::milliseconds(configuration.watermark.source_timeout_ms);
    Acquisition acquisition(options, tracker, std::move(pipeline), pool, filled, receivers_seen,
                            [&](FinishedRun finished) { service.run_finished(std::move(finished)); });
    service.attach(acquisition);

    ControlOptions control_options;
    control_options.socket = configuration.control.socket;
    control_options.max_clients = configuration.control.max_clients;
    control_options.max_request_bytes = configuration.control.max_request_bytes;
    control_options.send_buffer_bytes = configuration.control.send_buffer_bytes;
    ControlServer control(io, service, control_options);

    // The second signal does not wait for the disk any more.
    boost::asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
    bool told = false;
    std::function<void()> wait_for_signal = [&] {
        signals.async_wait([&](boost::system::error_code error, int signal) {
            if (error) return;
            const char* name = signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
            log_info("{}: {}", name, told ? "leaving at once" : "stopping");
            if (told) {
                status = exit_io;
                return leave();
            }
            told = true;
            wait_for_signal();
            service.shut_down(name, leave);
        });
    };
    wait_for_signal();

    for (const auto& receiver : receivers) {
        receiver->start();
        for (const std::string& warning : receiver->warnings())
            log_warning("{}", warning);
    }
    acquisition.start();
    log_info("petacqd {} ready: scanner {}, {} crystals, control socket {}", version, in.scanner.name,
             in.scanner.geometry.crystal_count(), configuration.control.socket);
    io.run();

    // The last answers leave: a client that waits for the end of a run hears of it.
    io.restart();
    io.run_for(std::chrono::milliseconds(100));
    control.close();
    io.restart();
    io.poll();
    for (const auto& receiver : receivers)
        receiver->stop();
    acquisition.stop();
    if (status == 0 && service.failed()) status = exit_io;
    log_info("petacqd stopped");
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"petacqd: turns the UDP stream of a PET scanner into coincidence list-mode"};
    app.set_version_flag("--version", std::string("petacqd ") + version);
    std::string file;
    bool check = false;
    app.add_option("-c,--config", file, "Configuration (JSON; docs/configuration.md)")->required();
    app.add_flag("--check", check, "Check configuration, scanner description and calibration, and exit");
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
            return run(in);
        } catch (const config::Error&) {
            throw;
        } catch (const std::invalid_argument& e) {
            throw config::Error(e.what());
        } catch (const std::exception& e) {
            log_error("{}", e.what());
            return exit_io;
        }
    } catch (const config::Error& e) {
        std::fprintf(stderr, "petacqd: %s\n", e.what());
        return exit_configuration;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "petacqd: %s\n", e.what());
        return exit_internal;
    }
}
