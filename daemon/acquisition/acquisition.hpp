// The acquisition thread: it cuts the received batches into slices, sends them through the pipeline, and
// hands the results to the run.
//
// One turn of its loop reads: take a batch, compute the watermark, submit, collect, account, check the run,
// publish. Each step is a class of its own in this folder; this one connects them. Other threads start and
// stop runs with begin_run() and end_run(), and watch with snapshot() and progress().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "daemon/acquisition/active_run.hpp"
#include "daemon/acquisition/batch_exchange.hpp"
#include "daemon/acquisition/command_queue.hpp"
#include "daemon/acquisition/host_clock.hpp"
#include "daemon/acquisition/options.hpp"
#include "daemon/acquisition/slice_flow.hpp"
#include "daemon/acquisition/snapshot.hpp"
#include "daemon/host/logging.hpp"

namespace petacq::daemon {

class Acquisition {
  public:
    /// Batches come from `filled` and go back to `pool`. All references must outlive this object.
    /// `on_finished` is called in the acquisition thread when a run has ended. Throws std::runtime_error when
    /// the pipeline fails at once.
    Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool, net::BatchQueue& filled,
                std::vector<const net::ReceiverCounters*> receivers,
                std::function<void(FinishedRun)> on_finished);
    ~Acquisition();
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;

    /// Starts the thread. The calling thread executes commands posted before.
    void start();
    /// Ends a run in progress at once and joins the thread. Idempotent.
    void stop();
    /// One turn of the loop in the calling thread, instead of start(): for tests. Waits a few milliseconds
    /// when no batch is there.
    void turn();

    /// Any thread. Starts a run: without a requested start at the present watermark, or, when the run keeps a
    /// raw capture, past every frame received so far, so that the capture holds the whole run. `started` is
    /// called in the acquisition thread when the watermark has reached the start. The caller must
    /// ensure that no run is waiting or in progress.
    void begin_run(std::unique_ptr<Run> run, const RequestedInterval& interval,
                   std::function<void()> started);
    /// Any thread. Stops the run once everything received up to now is decided. Does nothing without a run.
    void end_run(std::string reason);

    /// Any thread.
    [[nodiscard]] std::shared_ptr<const AcquisitionSnapshot> snapshot() const { return board_.latest(); }
    [[nodiscard]] const AcquisitionProgress& progress() const { return statistics_.progress; }

  private:
    /// The thread's own statistics, for progress() and the snapshot.
    struct Statistics {
        AcquisitionProgress progress;
        BusyTime busy;
        std::uint64_t given_up = 0;  ///< slices whose watermark passed waiting sources to save memory
    };
    /// Why a slice is cut where it is. In a replay only a step may end a row of the ledger over time.
    enum class Cut { any, step };

    void loop(const std::stop_token& stopping);
    void take_batch(net::Batch* batch);
    void process_slice(Cut cut = Cut::any);
    [[nodiscard]] bool row_ends(const SliceEnd& end, Cut cut);
    void account(const CollectedSlice& slice);
    void check_pipeline();
    void check_run();
    void check_common_reset();
    void publish(bool with_histograms);

    void prepare_run(std::unique_ptr<Run> run, const RequestedInterval& interval,
                     std::function<void()> started);
    void start_run();
    void finish_run();

    const AcquisitionOptions options_;
    const std::function<void(FinishedRun)> on_finished_;
    RateLimit log_limit_{std::chrono::seconds(10)};
    Statistics statistics_;
    SnapshotBoard board_;
    CommandQueue commands_;
    HostClock clock_;
    BatchExchange batches_;
    SliceFlow flow_;
    ActiveRun run_;
    std::jthread thread_;
};

}  // namespace petacq::daemon
