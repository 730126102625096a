// Start, stop and status: what stands between the control socket and the acquisition.
//
// Everything here runs in the control thread, the one that runs the io_context; only the end of a run comes
// from the acquisition thread, and closing its files is left to a thread of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/acquisition.hpp"
#include "daemon/control_server.hpp"
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

    /// Ends a run in progress and calls `done` when it is finalised; at once when there is none. Further
    /// starts are refused.
    void shut_down(const std::string& reason, std::function<void()> done);
    /// Acquisition's on_finished: called in its thread.
    void run_finished(FinishedRun finished);
    /// The last run, or the pipeline, failed.
    [[nodiscard]] bool failed() const { return failed_ || !last_run_failure_.empty(); }

  private:
    enum class State { idle, running, stopping, failed };
    struct Current {
        Run* run = nullptr;  ///< until it is finalised
        RunStatus status;
    };

    void finalised(const std::string& id, const Ledger& ledger, const RunEnd& end, const std::string& failure,
                   double seconds);
    void tick();
    void take_sample();

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    const RunSetting& setting_;
    const net::BatchPool& pool_;
    const std::uint64_t pipeline_bytes_;
    const std::vector<const net::Receiver*> receivers_;
    const std::function<void()> on_failure_;
    Acquisition* acquisition_ = nullptr;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

    State state_ = State::idle;
    bool failed_ = false;
    bool shutting_down_ = false;
    std::optional<Current> current_;
    std::vector<Reply> waiting_;  ///< for the end of the run
    std::vector<std::function<void()>> when_idle_;
    std::optional<Ledger> last_run_ledger_;
    std::string last_run_failure_;
    std::string last_health_;
    std::uint64_t stalls_before_ = 0;

    StatusSample sample_;
    StatusSample sample_before_;
    std::thread finisher_;
};

}  // namespace petacq::daemon
