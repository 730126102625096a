// The acquisition thread: it cuts the received batches into slices, sends them through the pipeline, and
// hands the results to the run.
//
// One turn of its loop reads: take datagrams, cut slices, execute commands, collect results, check the run,
// publish. Each step is a class of its own in this folder; this one connects them and decides when a slice is
// cut; run_control.hpp knows the run. Another thread starts and stops runs with begin_run() and end_run(),
// and any watches with snapshot() and progress().
//
// Host time is the arrival of the datagram that is being read. When none waits, it is the time up to which
// everything has been read. It decides when a slice is old, when a source is silent, and when to look for a
// reset of the boards. So a backlog gives the same slices as none, and a replay, whose host time is that of
// the capture, does not depend on the speed of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/acquisition/batch_exchange.hpp"
#include "daemon/acquisition/command_queue.hpp"
#include "daemon/acquisition/options.hpp"
#include "daemon/acquisition/replay_steps.hpp"
#include "daemon/acquisition/run_control.hpp"
#include "daemon/acquisition/slice_flow.hpp"
#include "daemon/acquisition/snapshot.hpp"
#include "daemon/acquisition/spectra_view.hpp"

namespace petacq::daemon {

class Acquisition {
  public:
    /// Why a run ends when its input does.
    static constexpr const char* end_of_capture = "end of the capture";

    /// Datagrams come from `filled`, and their batches go back to `pool`. All references must outlive this
    /// object. `on_finished` is called in the acquisition thread when a run has ended. Throws
    /// std::runtime_error when the pipeline fails at once.
    Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool, net::BatchQueue& filled,
                std::vector<const net::ReceiverCounters*> receivers,
                std::function<void(FinishedRun)> on_finished);
    ~Acquisition();
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;

    /// `listener` is called in the thread that measures the seconds when the snapshot shows another one,
    /// until stop() returns. Call it before start().
    void on_second(std::function<void()> listener) { on_second_ = std::move(listener); }
    /// Starts the thread. The calling thread executes commands posted before.
    void start();
    /// Ends a run in progress at once and joins the thread. Idempotent.
    void stop();
    /// One turn of the loop in the calling thread, instead of start(): for tests. Waits a few milliseconds
    /// when no datagram is there.
    void turn();

    // One thread at a time calls the next three.

    /// Starts a run: without a requested start at the present watermark, or, when the run keeps a
    /// raw capture, past every frame received so far, so that the capture holds the whole run. `started` is
    /// called in the acquisition thread when the watermark has reached the start. If that takes a live run
    /// longer than start_timeout, `on_finished` gets the failed run, and `started` is not called. A run waits
    /// for a requested start until it is asked to stop; `waiting` is called when it begins to wait for it. If
    /// the interval has passed, `on_finished` gets the run first, which never began. The caller must ensure
    /// that no run is waiting or in progress.
    void begin_run(std::unique_ptr<Run> run, const RequestedInterval& interval, std::function<void()> started,
                   std::function<void()> waiting = {});
    /// Stops the run once everything that had arrived at the host when the stop was given is
    /// decided; or at the detector time `stop_ticks`, or at once if that has passed. Does nothing without a
    /// run.
    void end_run(std::string reason, std::optional<std::uint64_t> stop_ticks = {},
                 std::chrono::steady_clock::time_point given = std::chrono::steady_clock::now());

    /// Frames submitted from now on are converted with this calibration, whose time offsets are
    /// at most `max_offset` ticks. The next run starts past every frame received before, so that it has no
    /// single of another calibration. `done` is called in the acquisition thread with the reason if that
    /// failed, "" if it did not; after a failure, everything continues as before. The caller must ensure that
    /// no run is waiting or in progress.
    void set_calibration(std::shared_ptr<const config::Calibration> calibration, std::uint64_t max_offset,
                         std::function<void(std::string failure)> done);

    /// Any thread.
    [[nodiscard]] std::shared_ptr<const AcquisitionSnapshot> snapshot() const { return board_.latest(); }
    [[nodiscard]] const AcquisitionProgress& progress() const { return statistics_.progress; }
    /// Any thread. Its units get counts if the pipeline has spectra.
    [[nodiscard]] SpectraView& spectra() { return spectra_; }

  private:
    /// The thread's own statistics, for progress() and the snapshot.
    struct ThreadStatistics {
        AcquisitionProgress progress;
        BusyTime busy;
    };

    void loop(const std::stop_token& stopping);
    void take(const net::DatagramSpan& piece);
    std::uint64_t take(const net::Batch& batch, const net::Group& group);
    void after_datagram(std::uint64_t step);
    void advance(std::int64_t host_ns);
    void publish(bool with_histograms);

    const AcquisitionOptions options_;
    std::function<void()> on_second_;
    ThreadStatistics statistics_;
    SnapshotBoard board_;
    SpectraView spectra_;
    CommandQueue commands_;
    BatchExchange batches_;
    PipelineFeed feed_;
    SliceFlow flow_;
    RunControl runs_;
    ReplaySteps steps_;
    std::int64_t now_ns_ = 0;  ///< host time; never goes back
    std::jthread thread_;
};

}  // namespace petacq::daemon
