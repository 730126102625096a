// The run of the acquisition thread: cuts the stream of data where a run starts and stops, and hands the run
// its part.
//
// A run starts and stops at a time of the detector, which the watermark reaches with some slice. So slices
// are cut here, and whatever starts, stops or fails a run is here, too. Each way in which a run ends closes
// its segment and then calls finish_run(), which calls nothing that could end a run again. Only
// check_pipeline() ends a run because the pipeline has failed.
//
// Host time (`now_ns`) is an argument. No thread-safety: the acquisition thread uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/acquisition/limit_clock.hpp"
#include "daemon/acquisition/run_interval.hpp"
#include "daemon/acquisition/slice_flow.hpp"
#include "daemon/acquisition/undecided_arrivals.hpp"
#include "daemon/detector/seconds_thread.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/run/run.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

/// A run that has ended; its files are still open.
struct FinishedRun {
    std::unique_ptr<Run> run;
    RunEnd end;
};

/// The run that waits or is in progress. `interval` says which; without a run the rest means nothing.
struct ActiveRun {
    explicit ActiveRun(std::uint64_t decided_reach) : arrivals(decided_reach) {}

    RunInterval interval;
    std::unique_ptr<Run> run;
    std::function<void()> started;  ///< to be called when the run starts
    Ledger at_start;
    SeenInRun seen;  ///< since the start; complete when the run has stopped
    gpu::SinglesHistograms histograms_at_start;
    UndecidedArrivals arrivals;  ///< from which the latency of the run is measured
};

class RunControl {
  public:
    /// Why a slice is cut where it is. In a replay only a step may end a row of the ledger over time.
    enum class Cut { any, step };

    /// All references must outlive this object. `on_seconds` gets what the seconds tell, in the thread that
    /// measures them. `on_finished` gets each run that has ended.
    RunControl(const AcquisitionOptions& options, const TrackerOptions& tracker, PipelineFeed& feed,
               SliceFlow& flow, BatchExchange& batches, SecondsThread::Listener on_seconds,
               std::function<void(FinishedRun)> on_finished);

    /// Acquisition::begin_run and Acquisition::end_run, in the acquisition thread.
    void begin(std::unique_ptr<Run> run, const RequestedInterval& interval, std::function<void()> started,
               std::int64_t now_ns);
    void ask_to_stop(const std::string& reason, std::optional<std::uint64_t> stop_ticks,
                     std::int64_t given_ns);
    /// Acquisition::set_calibration. REQUIRES: no run waits or is in progress.
    std::string set_calibration(const config::Calibration& calibration, std::uint64_t max_offset);
    /// Ends a run, also one that waits, with what has been submitted.
    void end_at_once(const std::string& reason);
    /// The input has ended: the run ends with all there is.
    void end_input(const std::string& reason, std::int64_t now_ns);

    /// Submits the slice with the watermark that the sources allow. Starts or finishes the run whose start or
    /// stop the watermark reaches.
    void cut_slice(std::int64_t now_ns, Cut cut = Cut::any);
    /// Hands the results of a slice to the run.
    void account(CollectedSlice& slice);
    /// A datagram that arrived at `arrival_ns` of the host's clock; the newest time with it is `newest`.
    void arrived(std::int64_t arrival_ns, std::uint64_t newest) { run_.arrivals.add(arrival_ns, newest); }

    /// Once a turn, before commands are executed: advances the time limits.
    void advance_limits(std::int64_t now_ns) { limits_.turn(now_ns); }
    /// A run ends with its pipeline, which fails with the seconds. A waiting run does so, too, so that its
    /// operator gets an answer.
    void check_pipeline();
    /// Follows the sources when they agree on a time before the present one.
    void check_detector_time(std::int64_t now_ns);
    /// Ends the run when its files have failed, somebody has asked for it, or a time limit has passed.
    void check_run(std::int64_t now_ns);

    /// Waits for the seconds that are being measured. None follows before the next slice.
    void wait_for_seconds();
    [[nodiscard]] bool none() const { return run_.interval.none(); }
    /// Adds the run in progress, and what is counted here. REQUIRES: snapshot.total is complete.
    void describe(AcquisitionSnapshot& snapshot) const;

  private:
    void submit_slice(SliceFlow::SliceWatermark next, Cut cut);
    void count_spectra();
    [[nodiscard]] bool row_ends(const SliceEnd& end, Cut cut);
    void withdraw(std::unique_ptr<Run> run, const std::string& reason);
    void start_run();
    void start_overdue_run();
    void give_up_start();
    void stop_as_asked(std::int64_t now_ns);
    void close_run();
    void close_segment(std::uint64_t stop);
    void finish_run();
    [[nodiscard]] bool has_records() const;
    void measure(CollectedSlice& slice);
    void check_seconds();
    void begin_data(std::uint64_t ticks);
    [[nodiscard]] bool may_have_data_before(const std::optional<std::uint64_t>& begin) const;
    void leave_out_before_data(std::uint64_t stop);
    [[nodiscard]] gpu::TickRange covered(std::uint64_t stop) const;
    void follow_reset(DetectorTime::Back back, std::int64_t now_ns);

    const AcquisitionOptions options_;
    PipelineFeed& feed_;
    SliceFlow& flow_;
    BatchExchange& batches_;
    const std::function<void(FinishedRun)> on_finished_;
    const std::chrono::nanoseconds source_timeout_;
    RateLimit log_limit_{std::chrono::seconds(10)};
    LimitClock limits_;
    ActiveRun run_;
    std::optional<SecondsThread> seconds_;  ///< absent: nothing is measured by second
    std::uint64_t late_ = 0;                ///< frames since the last second
    std::uint64_t given_up_ = 0;            ///< slices whose watermark passed waiting sources to save memory
    std::uint64_t given_up_at_start_ = 0;   ///< of the run
};

}  // namespace petacq::daemon
