// Start, stop and status: connects the control socket to the acquisition.
//
// Everything here runs in the control thread, which runs the io_context; only run_finished() is called by the
// acquisition thread. The control thread touches no file, because a disk may take any time. It hands that
// work to three threads, which post their results back: one creates and closes the files of runs, one reads
// those of earlier runs, and one asks for the free space.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

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
#include "daemon/run/list.hpp"
#include "daemon/service/calibration_switch.hpp"
#include "daemon/status/monitor.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/progress.hpp"
#include "net/batch.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

class Service : public ControlHandler {
  public:
    /// All references outlive the service. `acquisition` starts later, and gives the runs that have ended to
    /// run_finished(). `on_failure` is called once, when the pipeline has failed and its run, if any, is
    /// finalised.
    Service(boost::asio::io_context& io, RunSetting& setting, const net::BatchPool& pool,
            std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
            Acquisition& acquisition, std::function<void()> on_failure);
    /// Stops the acquisition.
    ~Service() override;

    void start(StartRequest request, Reply reply) override;
    void stop(StopRequest request, Reply reply) override;
    std::shared_ptr<const std::string> status() override;
    void runs(RunsRequest request, Reply reply) override;
    void ledger(std::optional<std::string> run, Reply reply) override;
    void reload(Reply reply) override { on_reload_(std::move(reply)); }
    void acknowledge(std::string run, Reply reply) override;

    /// `reload` carries out a request to reload.
    void on_reload(std::function<void(Reply)> reload) { on_reload_ = std::move(reload); }
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
    /// `listener` gets the status document about once a second, and may look at reading() meanwhile.
    void on_status(std::function<void(const nlohmann::json&)> listener) { on_status_ = std::move(listener); }
    /// The latest reading: the one that the latest status document was made of.
    [[nodiscard]] const Reading& reading() const { return monitor_.reading(); }
    /// The progress of every stage. Any thread may read it.
    [[nodiscard]] const Stages& stages() const { return monitor_.stages(); }
    /// Whether the last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return failed_ || run_failed_; }

  private:
    struct RunResult {
        Ledger ledger;
        std::string failure;
        RunVerdict verdict;
        std::optional<CaptureStatus> capture;
        double seconds = 0;
    };

    /// The status document and its text.
    struct Shown {
        std::shared_ptr<const nlohmann::json> document;
        std::shared_ptr<const std::string> text;
        std::chrono::steady_clock::duration cost{};  ///< of making it
    };

    [[nodiscard]] std::string start_refusal() const;
    void created(std::unique_ptr<Run> run, const RunRequest& request);
    void not_created(const std::string& failure);
    void started(const nlohmann::json& answer, std::shared_ptr<const AcquisitionSnapshot> snapshot);
    void accepted(const nlohmann::json& answer);
    void note_start();
    /// Stops the run in progress, or the one being created as soon as it is in progress.
    void stop_run(const std::string& reason, std::optional<std::uint64_t> stop_ticks = {});
    void finalise(const std::shared_ptr<FinishedRun>& finished);
    void finalised(const RunEnd& end, const RunResult& result);
    void discarded(const RunEnd& end);
    [[nodiscard]] nlohmann::json stop_answer(const RunEnd& end, const RunResult& result) const;
    void idle_again();
    void take_calibration(std::function<void(const std::string& failure)> done);
    void log_result(const std::string& id, const RunEnd& end, const RunResult& result) const;
    void schedule_tick();
    void tick();
    void second_measured();
    void find_last_run();
    /// Looks for interrupted runs, and calls `done` when the status shows them.
    void find_interrupted_runs(std::function<void()> done = {});
    void leave_out_current();
    void look_at_disk();
    /// The state of the runs has changed: reads the counters, and makes the next status anew.
    void show_change();
    void answer_from_files(Reply reply, std::function<nlohmann::json()> read);

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    const RunSetting& setting_;
    const std::function<void()> on_failure_;
    std::function<void(const nlohmann::json&)> on_status_;
    std::function<void(Reply)> on_reload_;
    Acquisition& acquisition_;
    CalibrationSwitch calibration_;
    RunState run_;
    Monitor monitor_;

    RateLimit log_limit_{std::chrono::seconds(10)};
    bool failed_ = false;
    bool run_failed_ = false;  ///< the last run of this daemon
    bool shutting_down_ = false;
    std::optional<std::string> run_asked_;          ///< the id in the latest start
    std::optional<Reply> start_reply_;              ///< to send when the run has started
    std::optional<std::uint64_t> noted_start_;      ///< of the run in progress, in its run.json
    std::optional<std::string> stop_reason_;        ///< to stop the run that is being created
    std::vector<Reply> stop_replies_;               ///< to send when the run is finalised
    std::vector<std::function<void()>> when_idle_;  ///< to call then
    std::optional<Shown> shown_;                    ///< absent: to be made
    /// When the thread of disk_ was asked; absent: it has answered.
    std::optional<std::chrono::steady_clock::time_point> disk_asked_;

    RunList run_list_;  ///< used by the thread of files_ only
    // One thread each, joined before anything else goes.
    boost::asio::thread_pool run_files_{1};  ///< creates and closes the files of runs
    boost::asio::thread_pool files_{1};      ///< reads run directories
    boost::asio::thread_pool disk_{1};       ///< asks for the free space
};

}  // namespace petacq::daemon
