#include "daemon/live.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/exit_status.hpp"
#include "daemon/control/access.hpp"
#include "daemon/control/server.hpp"
#include "daemon/http/server.hpp"
#include "daemon/service/alarm.hpp"
#include "daemon/service/reload.hpp"
#include "daemon/service/service.hpp"
#include "daemon/service/settings.hpp"
#include "daemon/sinogram/quick_look.hpp"
#include "daemon/system/descriptor_limit.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/notify.hpp"
#include "daemon/system/sockets/inherited_sockets.hpp"
#include "daemon/system/version.hpp"
#include "daemon/system/watchdog.hpp"
#include "daemon/tap/server.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

namespace {

/// Time that the service manager allows for writing and syncing the last blocks of a run to a slow disk.
constexpr std::chrono::minutes time_for_files{2};
/// Time in which clients receive their last answers before the sockets close.
constexpr std::chrono::milliseconds time_for_answers{100};

double mebibytes(std::uint64_t bytes) {
    return static_cast<double>(bytes) / 0x1p20;
}

/// Silent where the system decides.
void log_place(const char* what, const net::Cores& cores) {
    if (!cores.empty()) log_info("placement: {} on cores {}", what, net::to_text(cores));
}

AcquisitionOptions with_tap(AcquisitionOptions options, Tap& tap) {
    options.tap = &tap;
    return options;
}

/// Everything that runs in live mode, in the order of the data flow. The members are built in this order and
/// destroyed in the reverse one.
class Live {
  public:
    Live(const Inputs& inputs, std::filesystem::path file);
    int run();

  private:
    std::vector<net::ReceiverOptions> sockets() const;
    std::vector<std::unique_ptr<net::Receiver>> open_receivers();
    template <class Of>
    auto of_receivers(Of of) const {
        std::vector<decltype(of(*receivers_.front()))> pointers;
        for (const auto& receiver : receivers_)
            pointers.push_back(of(*receiver));
        return pointers;
    }
    void log_memory() const;
    void open_http();
    void open_tap();
    void leave() { io_.stop(); }
    void wait_for_signal();
    void wait_for_hangup();
    void reload(std::function<void(const nlohmann::json& answer, const std::string& failure)> done);
    void wait_for_user_signal();
    void start_receiving();
    ServiceCallbacks callbacks();
    void publish();
    void stop_serving();

    const Inputs& inputs_;
    const config::Configuration& configuration_;
    const std::filesystem::path file_;
    const std::vector<net::ReceiverOptions> sockets_;
    Assembly assembly_;
    net::OverloadGate gate_{assembly_.pool};
    std::vector<std::unique_ptr<net::Receiver>> receivers_;
    boost::asio::io_context io_{1};
    int status_ = 0;
    bool stopping_ = false;
    Tap tap_;
    Acquisition acquisition_;
    Service service_;
    ControlServer control_;
    std::optional<QuickLook> quick_look_;
    std::optional<HttpServer> http_;
    std::optional<TapServer> tap_server_;
    boost::asio::signal_set signals_{io_, SIGINT, SIGTERM};
    boost::asio::signal_set hangups_{io_, SIGHUP};
    boost::asio::signal_set user_signals_{io_, SIGUSR1, SIGUSR2};
    StatusNotifier notifier_;
    std::optional<Alarm> alarm_;
    ProgressWatch progress_;  ///< of the watchdog's thread
    std::optional<Watchdog> watchdog_;
    boost::asio::thread_pool file_reader_{1};  ///< reads the configuration again; joined before anything goes
};

Live::Live(const Inputs& inputs, std::filesystem::path file)
    : inputs_(inputs),
      configuration_(inputs.configuration),
      file_(std::move(file)),
      sockets_(sockets()),
      assembly_(inputs, sockets_.size(), sockets_, true),
      receivers_(open_receivers()),
      acquisition_(with_tap(assembly_.acquisition, tap_), assembly_.tracker,
                   std::move(assembly_.backend.pipeline), assembly_.pool, assembly_.filled,
                   of_receivers([](const net::Receiver& receiver) { return &receiver.counters(); }),
                   [this](FinishedRun finished) { service_.run_finished(std::move(finished)); }),
      service_(io_, assembly_.setting, assembly_.pool, assembly_.pipeline_bytes,
               of_receivers([](const net::Receiver& receiver) { return &receiver; }), acquisition_,
               callbacks()),
      control_(io_, service_, configuration_.control) {
    open_http();
    open_tap();
    if (!configuration_.alarm.command.empty()) alarm_.emplace(configuration_.alarm);
}

/// They are called by the io_context, which runs once everything is built.
ServiceCallbacks Live::callbacks() {
    return {[this] {
                status_ = exit_status::internal_failure;
                leave();
            },
            [this] { publish(); },
            [this](Reply reply) {
                reload([reply = std::move(reply)](const nlohmann::json& answer, const std::string& failure) {
                    failure.empty() ? reply.result(answer) : reply.error(rpc_refused, failure);
                });
            },
            [this](const HistoryRequest& request, const Reply& reply) {
                if (http_) return http_->history(request, reply);
                reply.error(rpc_refused, "http.listen is empty: the daemon keeps no history");
            }};
}

std::vector<net::ReceiverOptions> Live::sockets() const {
    std::vector<net::ReceiverOptions> sockets =
        receiver_options(configuration_, inputs_.scanner, inputs_.foreign);
    take_inherited_sockets(sockets);
    return sockets;
}

std::vector<std::unique_ptr<net::Receiver>> Live::open_receivers() {
    log_memory();
    std::vector<std::unique_ptr<net::Receiver>> receivers;
    for (net::ReceiverOptions options : sockets_) {
        options.cores = assembly_.placement.receivers[receivers.size()];
        receivers.push_back(std::make_unique<net::Receiver>(options, assembly_.pool,
                                                            assembly_.filled.lane(receivers.size()), &gate_));
        const net::Receiver& receiver = *receivers.back();
        log_info("receiving on {}:{}, socket buffer {:.1f} MiB{}", options.address, receiver.port(),
                 mebibytes(receiver.receive_buffer_bytes()),
                 options.cores.empty() ? "" : ", on cores " + net::to_text(options.cores));
    }
    return receivers;
}

void Live::log_memory() const {
    const net::BatchPool& pool = assembly_.pool;
    log_info("batch pool: {} batches, {:.1f} MiB ({})", pool.count(),
             mebibytes(pool.count() * pool.batch_bytes()), pool.memory_description());
    log_info("pipeline: {} ({}), at most {:.1f} MiB", assembly_.setting.backend,
             assembly_.setting.backend_choice, mebibytes(assembly_.pipeline_bytes));
    log_place("acquisition", assembly_.placement.acquisition);
    log_place("memory of the pool", assembly_.placement.pool);
    log_place("threads of the GPU and of list-mode", assembly_.placement.results);
    const config::ListMode& listmode = configuration_.listmode;
    log_info("list-mode: up to {:.1f} MiB of records may wait for the disk",
             mebibytes(std::uint64_t{listmode.queue_blocks} * listmode.block_bytes *
                       configuration_.record_kinds()));
}

void Live::open_http() {
    const config::Http& http = configuration_.http;
    if (http.listen.empty()) return;
    const double interval_s = configuration_.quick_look.interval_s;
    if (interval_s > 0 && configuration_.listmode.write_coincidences) {
        std::optional<sinogram::GammaHistograms> gammas;
        if (configuration_.finds_triples()) gammas.emplace(*configuration_.gammas);
        quick_look_.emplace(tap_, inputs_.scanner,
                            gpu::PairRule::of(inputs_.scanner.geometry, assembly_.setting.rules),
                            std::chrono::milliseconds(std::llround(1e3 * interval_s)), std::move(gammas));
    }
    http_.emplace(http_options(configuration_), inputs_.scanner,
                  control_through(io_, service_, http.allow_control),
                  configuration_.spectra.enabled
                      ? [this](std::uint32_t unit) { return acquisition_.spectra().ask(unit); }
                      : SpectraSource{},
                  quick_look_ ? [this] { return quick_look_->documents(); } : QuickLookSource{});
    log_info("http: listening on {}, port {}", http.listen, http_->port());
}

void Live::open_tap() {
    const config::Configuration& c = configuration_;
    if (c.tap.socket.empty()) return;
    TapSource source{
        inputs_.scanner.name,          inputs_.scanner.tick_ps,  inputs_.scanner.geometry.crystal_count(),
        c.listmode.write_coincidences, c.listmode.write_singles, c.finds_triples()};
    const auto mode = static_cast<mode_t>(std::stoul(c.control.socket_mode, nullptr, 8));
    tap_server_.emplace(tap_, std::move(source),
                        TapServerOptions{c.tap.socket, mode, group_id(c.control.group), c.tap.max_clients});
    log_info("tap: socket {}", c.tap.socket);
}

// The first signal stops the run in progress and waits for its files. The second signal does not wait.
void Live::wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
        if (error) return;
        const char* name = signal == SIGINT ? "SIGINT" : "SIGTERM";
        log_info("{}: {}", name, stopping_ ? "leaving at once" : "stopping");
        if (stopping_) {
            status_ = exit_status::io_failure;
            return leave();
        }
        stopping_ = true;
        notify_stopping(assembly_.acquisition.stop_timeout + time_for_files);
        wait_for_signal();
        service_.shut_down(std::string("daemon stopped by ") + name, [this] { leave(); });
    });
}

void Live::wait_for_hangup() {
    hangups_.async_wait([this](boost::system::error_code error, int) {
        if (error || stopping_) return;
        notify_reloading();
        reload([this](const nlohmann::json& /*answer*/, const std::string& /*logged*/) {
            notify_ready();
            wait_for_hangup();
        });
    });
}

void Live::reload(std::function<void(const nlohmann::json& answer, const std::string& failure)> done) {
    const RunSetting& setting = assembly_.setting;
    boost::asio::post(file_reader_, [this, running = setting.configuration,
                                     in_use = setting.calibration.sha256, done = std::move(done)] {
        std::function<void()> result;
        try {
            result = [this, done,
                      reloaded = daemon::reload(file_, *running, inputs_.scanner.geometry, in_use)] {
                apply(reloaded, file_, assembly_.setting);
                service_.set_calibration(reloaded.calibration,
                                         [this, done, reloaded](const std::string& why) {
                                             done({{"changed", reloaded.changed},
                                                   {"needs_restart", reloaded.needs_restart},
                                                   {"calibration", service_.document().at("calibration")}},
                                                  why);
                                         });
            };
        } catch (const std::exception& e) {
            result = [done, why = std::string(e.what())] {
                log_error("reload: the configuration stays as it was: {}", why);
                done({}, why);
            };
        }
        boost::asio::post(io_, [this, result = std::move(result)] {
            if (!stopping_) result();
        });
    });
}

void Live::wait_for_user_signal() {
    user_signals_.async_wait([this](boost::system::error_code error, int signal) {
        if (error) return;
        log_info("{}: ignored", signal == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
        wait_for_user_signal();
    });
}

void Live::start_receiving() {
    for (const auto& receiver : receivers_) {
        receiver->start();
        for (const std::string& warning : receiver->warnings())
            log_warning("{}", warning);
    }
    acquisition_.start();
    if (inputs_.reference)
        log_info("the detector is compared with {}", configuration_.detector_reference.string());
    log_info("petacqd {} ready: scanner {}, {} crystals, control socket {}", version, inputs_.scanner.name,
             inputs_.scanner.geometry.crystal_count(), configuration_.control.socket);
}

void Live::publish() {
    if (!has_manager() && !alarm_ && !http_) return;  // nobody reads it
    const nlohmann::json& document = service_.document();
    notifier_.tell(document);
    if (alarm_) alarm_->observe(document);
    if (!http_) return;
    const Reading& seen = service_.reading();
    http_->publish({document, seen.acquisition->histograms, seen.acquisition->histograms_taken,
                    seen.acquisition->second});
}

int Live::run() {
    wait_for_signal();
    wait_for_hangup();
    wait_for_user_signal();
    start_receiving();
    publish();
    if (const auto interval = watchdog_interval()) {
        const auto states = [this] {
            progress_.observe(service_.stages().read(), std::chrono::steady_clock::now());
            return progress_.states();
        };
        watchdog_.emplace(*interval, states, notify_watchdog);
    }
    notify_ready();  // from here on the service manager expects the watchdog to be fed
    io_.run();
    boost::system::error_code ignored;
    signals_.clear(ignored);  // from now on a signal kills a process that a hanging disk holds up

    stop_serving();
    watchdog_.reset();
    for (const auto& receiver : receivers_)
        receiver->stop();
    acquisition_.stop();
    if (status_ == 0 && service_.failed()) status_ = exit_status::io_failure;
    log_info("petacqd stopped");
    notify_status(status_ == 0 ? "stopped" : "failed: the log says why");
    return status_;
}

// Clients that wait for the end of a run, and subscribers after a failure, still receive their last message.
void Live::stop_serving() {
    if (status_ == exit_status::internal_failure) control_.tell_subscribers();
    io_.restart();
    io_.run_for(time_for_answers);
    control_.close();
    if (http_) http_->close();
    if (tap_server_) tap_server_->close();
    io_.restart();
    io_.poll();
}

}  // namespace

int run_live(const Inputs& inputs, const std::filesystem::path& file) {
    // Beyond a file size limit a write must fail, which ends the run in order, and not kill the daemon.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(inputs.configuration);
    notify_status("starting: memory, back-end and sockets");
    return Live(inputs, file).run();
}

}  // namespace petacq::daemon
