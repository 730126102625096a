// Start, stop and status: what stands between the control socket and the acquisition.
//
// Everything here runs in the control thread, the one that runs the io_context; only the end of a run comes
// from the acquisition thread. Closing its files, and reading those of earlier runs, is left to threads of
// their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/acquisition.hpp"
#include "daemon/control_server.hpp"
#include "daemon/disk_space.hpp"
#include "daemon/health.hpp"
#include "daemon/logging.hpp"
#include "daemon/progress.hpp"
#include "daemon/randoms_meter.hpp"
#include "daemon/run_list.hpp"
#include "daemon/status.hpp"
#include "net/batch.hpp"
#include "net/receiver.hpp"

namespace petacq::daemon {

class Service : public ControlHandler {
  public:
    /// All that is referred to outlives the service. `on_failure` is called once, when the pipeline has
    /// failed and its run, if any, is finalised.
    Service(boost::asio::io_context& io, const RunSetting& setting, const net::BatchPool& pool,
            std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
            std::function<void()> on_failure);
    ~Service() override;

    /// Before anything else is called.
    void attach(Acquisition& acquisition);

    void start(StartRequest request, Reply reply) override;
    void stop(Reply reply) override;
    nlohmann::json status() override;
    void runs(RunsRequest request, Reply reply) override;
    void ledger(std::optional<std::string> run, Reply reply) override;

    /// Ends a run in progress and calls `done` when it is finalised; at once when there is none. Further
    /// starts are refused.
    void shut_down(const std::string& reason, std::function<void()> done);
    /// Acquisition's on_finished: called in its thread.
    void run_finished(FinishedRun finished);
    /// Before attach(). Expected randoms are in the status from then on.
    void measure_randoms(std::unique_ptr<gpu::RandomsEstimator> estimator) {
        randoms_.emplace(std::move(estimator));
    }
    /// Of the latest second; nullptr while they are not known.
    [[nodiscard]] std::shared_ptr<const gpu::ExpectedRandoms> expected_randoms() const;
    /// `told` hears the status document about once a second.
    void on_status(std::function<void(const nlohmann::json&)> told) { on_status_ = std::move(told); }
    /// As of about a second ago: receivers, acquisition, pipeline, writers, the end of a run. Empty before
    /// attach().
    [[nodiscard]] std::vector<StageState> stage_states() const { return progress_.states(); }
    /// The last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return failed_ || !last_run_failure_.empty(); }

  private:
    enum class State { idle, running, stopping, failed };
    struct Current {
        Run* run = nullptr;  ///< until it is finalised
        RunStatus status;
    };

    void stop_run(const std::string& reason);
    void finalised(const std::string& id, const Ledger& ledger, const RunEnd& end, const std::string& failure,
                   const std::optional<CaptureStatus>& capture, double seconds);
    void tick();
    void take_sample();
    void look_around();
    void assess();
    [[nodiscard]] std::vector<StageProgress> stage_progress() const;

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    const RunSetting& setting_;
    const net::BatchPool& pool_;
    const std::uint64_t pipeline_bytes_;
    const std::vector<const net::Receiver*> receivers_;
    const std::function<void()> on_failure_;
    std::function<void(const nlohmann::json&)> on_status_;
    Acquisition* acquisition_ = nullptr;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

    State state_ = State::idle;
    RateLimit log_limit_{std::chrono::seconds(10)};
    bool failed_ = false;
    bool shutting_down_ = false;
    std::optional<Current> current_;
    std::vector<Reply> waiting_;  ///< for the end of the run
    std::vector<std::function<void()>> when_idle_;
    std::optional<Ledger> last_run_ledger_;
    std::string last_run_id_;
    std::string last_run_failure_;
    Health health_;
    DiskStatus disk_;
    WriteRate write_rate_;
    std::uint64_t stalls_before_ = 0;           ///< of the run's writers, a tick ago
    std::uint64_t capture_dropped_before_ = 0;  ///< of the run's capture, likewise

    std::optional<RandomsMeter> randoms_;
    ProgressWatch progress_;
    StatusSample sample_;         ///< the latest
    StatusSample sample_tick_;    ///< of the latest tick
    StatusSample sample_before_;  ///< of the tick before: long enough ago for a rate
    std::shared_ptr<const AcquisitionSnapshot> daemon_began_;
    std::shared_ptr<const AcquisitionSnapshot> run_began_;  ///< of the run in progress
    std::thread finisher_;
    std::shared_ptr<FinishedRun> finishing_;  ///< what that thread is at

    RunList run_list_;                   ///< belongs to the thread of files_
    boost::asio::thread_pool files_{1};  ///< reads what may take long; joined before anything else goes
};

}  // namespace petacq::daemon
