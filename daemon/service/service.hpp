// Carries out the requests of the control socket: connects it to the acquisition, to the files of runs and to
// the monitor. RunLifecycle decides which request is allowed when.
//
// Everything here runs in the control thread, which runs the io_context; only run_finished() is called by the
// acquisition thread. The control thread touches no file, because a disk may take any time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "daemon/control/server.hpp"
#include "daemon/peer/peer_thread.hpp"
#include "daemon/service/calibration_switch.hpp"
#include "daemon/service/run_files.hpp"
#include "daemon/service/run_lifecycle.hpp"
#include "daemon/service/run_result.hpp"
#include "daemon/service/space_watch.hpp"
#include "daemon/status/monitor.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/progress.hpp"
#include "net/batch.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// What the service calls, in its thread. None may be empty.
struct ServiceCallbacks {
    /// Once, when the pipeline has failed and its run, if any, is finalised.
    std::function<void()> on_failure;
    /// About once a second, at a fault of the detector, when a run starts or ends, and with a mark: what is
    /// kept of the past shall miss none of them. Service::document() is the status.
    std::function<void()> on_status;
    /// Carries out a request to reload.
    std::function<void(Reply)> reload;
    /// Says what happened.
    std::function<void(HistoryRequest, Reply)> history;
};

class Service : public ControlHandler {
  public:
    /// All references outlive the service. `acquisition` starts later, and gives the runs that have ended to
    /// run_finished().
    Service(boost::asio::io_context& io, RunSetting& setting, const net::BatchPool& pool,
            std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
            Acquisition& acquisition, ServiceCallbacks callbacks);
    /// Stops the acquisition.
    ~Service() override;

    void start(StartRequest request, Reply reply) override;
    void stop(StopRequest request, Reply reply) override;
    std::shared_ptr<const std::string> status() override;
    void runs(RunsRequest request, Reply reply) override;
    void ledger(std::optional<std::string> run, Reply reply) override;
    void reload(Reply reply) override { callbacks_.reload(std::move(reply)); }
    void history(HistoryRequest request, Reply reply) override {
        callbacks_.history(request, std::move(reply));
    }
    void acknowledge(std::string run, Reply reply) override;
    void mark(std::string text, Reply reply) override;

    /// Brings another calibration into use, or has it wait for the end of the run in progress. Absent: the
    /// one in use stays, and none waits any more. `done` gets the reason if that failed, else "".
    void set_calibration(std::optional<NewCalibration> next,
                         std::function<void(const std::string& failure)> done);
    /// Stops a run in progress and calls `done` when it is finalised, or at once if there is none. Refuses
    /// starts from then on.
    void shut_down(const std::string& reason, std::function<void()> done);
    /// The acquisition's on_finished: called in its thread.
    void run_finished(FinishedRun finished);

    /// The document that status() gives as text. At most a fifth of a second old, or older if it takes long
    /// to make: making it takes at most a fifth of the time of the control thread, however many clients ask.
    const nlohmann::json& document();
    /// The latest reading: the one that the latest status document was made of.
    [[nodiscard]] const Reading& reading() const { return monitor_.reading(); }
    /// The progress of every stage. Any thread may read it.
    [[nodiscard]] const Stages& stages() const { return monitor_.stages(); }
    /// Whether the last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return lifecycle_.failed(); }

  private:
    /// The status document and its text.
    struct Shown {
        std::shared_ptr<const nlohmann::json> document;
        std::shared_ptr<const std::string> text;     ///< nullptr: nobody has asked for it
        std::chrono::steady_clock::duration cost{};  ///< of making both
    };

    // The way of a run.
    void created(std::unique_ptr<Run> run, const RunRequest& request);
    void not_created(const std::string& failure);
    void started(const std::string& run, const nlohmann::json& answer,
                 std::shared_ptr<const AcquisitionSnapshot> snapshot);
    void note_start();
    void end_run(const RunDecision& decision);
    void finished(const std::shared_ptr<FinishedRun>& finished);
    void finalised(const RunResult& result);
    void discarded(const RunResult& result);
    void run_gone(const RunResult& result);
    void refuse_start(const std::string& why);
    void rest(const RunDecision& decision);
    [[nodiscard]] std::optional<std::uint64_t> detector_time_now() const;
    void marked(const std::string& run, const Mark& made, const Reply& reply, const std::string& failure);
    void note_failure();
    void take_calibration(std::function<void(const std::string& failure)> done);

    // What the status shows.
    void schedule_tick();
    void tick();
    void second_measured();
    void ask_peer();
    void heard_peer(PeerAnswer answer);
    void show_change();
    void show_phase();
    void find_interrupted_runs(std::function<void()> done = {});
    void leave_out_current();
    [[nodiscard]] std::string current_id() const { return run_.current ? run_.current->id : ""; }

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    const RunSetting& setting_;
    const ServiceCallbacks callbacks_;
    Acquisition& acquisition_;
    CalibrationSwitch calibration_;
    RunLifecycle lifecycle_;
    RunState run_;
    Monitor monitor_;
    RateLimit log_limit_{std::chrono::seconds(10)};

    std::optional<Reply> start_reply_;              ///< to send when the run has started
    std::vector<Reply> stop_replies_;               ///< to send when the run is finalised
    std::vector<std::function<void()>> when_idle_;  ///< to call then
    std::optional<std::uint64_t> noted_start_;      ///< of the run in progress, in its run.json
    std::optional<Shown> shown_;                    ///< absent: to be made

    // Their threads are joined before anything else goes.
    RunFiles files_;
    SpaceWatch space_;
    std::optional<PeerThread> peer_;  ///< with `peer.url`
};

}  // namespace petacq::daemon
