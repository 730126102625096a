// Start, stop and status: connects the control socket to the acquisition.
//
// Everything here runs in the control thread, which runs the io_context; only run_finished() is called by the
// acquisition thread. Threads of their own close the files of a run and read those of earlier runs.
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
#include <thread>
#include <utility>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "daemon/control/server.hpp"
#include "daemon/host/logging.hpp"
#include "daemon/host/progress.hpp"
#include "daemon/run/list.hpp"
#include "daemon/status/monitor.hpp"
#include "net/batch.hpp"
#include "net/receiver.hpp"

namespace petacq::daemon {

class Service : public ControlHandler {
  public:
    /// All references outlive the service. `on_failure` is called once, when the pipeline has failed and its
    /// run, if any, is finalised.
    Service(boost::asio::io_context& io, const RunSetting& setting, const net::BatchPool& pool,
            std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
            std::function<void()> on_failure);
    ~Service() override;

    /// Call it before any of the functions below.
    void attach(Acquisition& acquisition);

    void start(StartRequest request, Reply reply) override;
    void stop(Reply reply) override;
    nlohmann::json status() override;
    void runs(RunsRequest request, Reply reply) override;
    void ledger(std::optional<std::string> run, Reply reply) override;

    /// Stops a run in progress and calls `done` when it is finalised, or at once if there is none. Refuses
    /// starts from then on.
    void shut_down(const std::string& reason, std::function<void()> done);
    /// The acquisition's on_finished: called in its thread.
    void run_finished(FinishedRun finished);
    /// Call it before attach(). The status contains expected randoms from then on.
    void measure_randoms(std::unique_ptr<gpu::RandomsEstimator> estimator) {
        monitor_.measure_randoms(std::move(estimator));
    }
    /// `listener` gets the status document about once a second, and may look at reading() meanwhile.
    void on_status(std::function<void(const nlohmann::json&)> listener) { on_status_ = std::move(listener); }
    /// The latest reading: the one that the latest status document was made of.
    [[nodiscard]] const Reading& reading() const { return monitor_.reading(); }
    /// About a second old: receivers, acquisition, pipeline, writers, the end of a run. Empty before
    /// attach().
    [[nodiscard]] std::vector<StageState> stage_states() const { return monitor_.reading().stages; }
    /// Whether the last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return failed_ || !run_.last_failure.empty(); }

  private:
    struct RunResult {
        Ledger ledger;
        std::string failure;
        std::optional<CaptureStatus> capture;
        double seconds = 0;
    };

    void stop_run(const std::string& reason);
    void finalise(const std::shared_ptr<FinishedRun>& finished);
    void finalised(const FinishedRun& finished, const RunResult& result);
    static void log_result(const std::string& id, const RunEnd& end, const RunResult& result);
    void schedule_tick();
    void tick();
    void answer_from_files(Reply reply, std::function<nlohmann::json()> read);

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    const RunSetting& setting_;
    const std::function<void()> on_failure_;
    std::function<void(const nlohmann::json&)> on_status_;
    Acquisition* acquisition_ = nullptr;
    Monitor monitor_;
    RunState run_;

    RateLimit log_limit_{std::chrono::seconds(10)};
    bool failed_ = false;
    bool shutting_down_ = false;
    std::vector<Reply> stop_replies_;               ///< to send when the run is finalised
    std::vector<std::function<void()>> when_idle_;  ///< to call then
    std::thread finisher_;

    RunList run_list_;                   ///< used by the thread of files_ only
    boost::asio::thread_pool files_{1};  ///< reads run directories; joined before anything else goes
};

}  // namespace petacq::daemon
