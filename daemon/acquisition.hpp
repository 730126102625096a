// The acquisition thread: from filled batches to slices, through the pipeline, to the run.
//
// It owns the source tracker, the pipeline and the run in progress. Others talk to it by begin_run and
// end_run and look at it through snapshot().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/capture.hpp"
#include "daemon/latency.hpp"
#include "daemon/ledger.hpp"
#include "daemon/logging.hpp"
#include "daemon/run.hpp"
#include "daemon/source_tracker.hpp"
#include "gpu/pipeline.hpp"
#include "net/batch.hpp"
#include "net/counter.hpp"
#include "net/receiver.hpp"

namespace petacq::daemon {

struct AcquisitionOptions {
    std::uint32_t slice_frames = 262'144;
    std::chrono::milliseconds slice_interval{20};
    /// When more wait, slow sources are given up. The pipeline has room for pending_slack slices more; beyond
    /// that the run ends as failed.
    std::uint64_t max_pending_singles = 16U << 20;
    /// A run that is being stopped ends without its last singles when the watermark has not passed them by
    /// then (host time).
    std::chrono::milliseconds stop_timeout{10'000};
    /// How long a datagram may be under way from its socket to this thread.
    std::chrono::milliseconds receive_delay{20};
    net::Framing framing = net::Framing::sequenced;
    std::uint64_t max_offset = 0;    ///< ticks: largest magnitude of a time offset
    std::uint64_t max_disorder = 0;  ///< ticks
    std::uint64_t max_lag = 0;       ///< ticks
    std::uint64_t second = 0;        ///< ticks: how often the ledger over time has a row; 0: one in all
    /// Replay: where host time stands; until then everything has been handed over. Live: nullptr.
    const std::atomic<std::int64_t>* replay_clock = nullptr;
};

/// Slices that may wait beyond max_pending_singles: the one that exceeds it, the one with which slow sources
/// are given up, and one that closes a run.
inline constexpr std::uint64_t pending_slack = 3;

/// Where a run begins and ends, in ticks of detector time. What is absent is settled as the data come.
struct RunInterval {
    std::optional<std::uint64_t> start;     ///< absent: now
    std::optional<std::uint64_t> stop;      ///< absent: when asked to, or after `duration`
    std::optional<std::uint64_t> duration;  ///< from the start, or from the first frame when that comes later
};

/// What a run that ended hands back.
struct FinishedRun {
    std::unique_ptr<Run> run;
    RunEnd end;
};

/// Read by any thread at any moment, also while the acquisition is held up.
struct AcquisitionProgress {
    net::Counter turns;      ///< of the loop
    net::Counter submitted;  ///< slices given to the pipeline
    net::Counter collected;  ///< and taken back; less than submitted: it is at work
};

/// A consistent view of the acquisition thread, as of its last slice.
struct AcquisitionSnapshot {
    std::chrono::steady_clock::time_point taken;
    std::uint64_t bytes_received = 0;  ///< UDP payload, since the start
    Ledger total;                      ///< since the daemon started; without pairs and saved singles
    std::optional<Ledger> run;         ///< since the run began
    TrackerStatus sources;
    std::uint64_t watermark = 0;                               ///< ticks, of the latest slice
    std::shared_ptr<const gpu::SinglesHistograms> histograms;  ///< since the start; about once a second
    std::chrono::steady_clock::time_point histograms_taken;
    std::shared_ptr<const gpu::SinglesHistograms> histograms_before;  ///< the ones before; null at first
    std::chrono::steady_clock::time_point histograms_before_taken;
    std::uint64_t pending = 0;   ///< singles that wait for the watermark
    std::uint64_t given_up = 0;  ///< slices whose watermark went past waiting sources to save memory
    double busy_s = 0;           ///< time not spent waiting for batches
    double pipeline_busy_s = 0;  ///< time with a slice in the pipeline
    std::uint64_t pending_high_water = 0;      ///< these two since a run began, or since the start
    std::uint64_t free_batches_low_water = 0;  ///< as seen between batches
    std::string failure;                       ///< the pipeline's; empty while all is well
};

class Acquisition {
  public:
    /// Batches come from `filled` and go back to `pool`. All that is referred to outlives this object.
    /// `on_finished` is called in the acquisition thread when a run has ended.
    Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool, net::BatchQueue& filled,
                std::vector<const net::ReceiverCounters*> receivers,
                std::function<void(FinishedRun)> on_finished);
    ~Acquisition();
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;

    /// What was asked for before is carried out in the calling thread.
    void start();
    /// Ends a run in progress at once, joins. Idempotent.
    void stop();

    /// Any thread. Begins a run: without a start at the present watermark, or, when the run keeps a raw
    /// capture, past every frame that has come, so that the capture holds all of the run. `begun` is called
    /// in the acquisition thread when the watermark has reached the start. Only when no run is in progress
    /// (the caller keeps the order).
    void begin_run(std::unique_ptr<Run> run, const RunInterval& interval, std::function<void()> begun);
    /// Any thread. Ends the run in progress once everything received up to now is decided. Nothing when there
    /// is none.
    void end_run(std::string reason);

    /// Any thread.
    [[nodiscard]] std::shared_ptr<const AcquisitionSnapshot> snapshot() const;
    [[nodiscard]] const AcquisitionProgress& progress() const { return progress_; }

  private:
    using Clock = std::chrono::steady_clock;

    struct ActiveRun {
        std::unique_ptr<Run> run;
        std::function<void()> begun;
        std::optional<std::uint64_t> duration;  ///< ticks
        std::uint64_t start = 0;
        std::optional<std::uint64_t> stop;  ///< ticks; known when the duration counts or a stop was asked for
        std::string reason = "duration reached";
        std::optional<std::int64_t> stop_asked_ns;
        bool stop_fixed = false;  ///< `stop` takes the asked stop into account
        std::optional<Clock::time_point> stop_deadline;
        bool failed = false;
        Ledger at_start;
        std::optional<std::uint64_t> rows_from;  ///< ticks, of the ledger over time; absent: no row yet
        std::uint64_t row_due = 0;               ///< ticks, when the next one is
        gpu::SinglesHistograms histograms_at_start;
    };
    /// A slice that the pipeline has, and the batches that may go back when it is done with it.
    struct InFlight {
        std::vector<net::Batch*> batches;
        std::uint64_t frames = 0;
        std::uint64_t watermark = 0;
        std::optional<DatagramLedger> row;  ///< ends a row of the ledger over time
    };

    // acquisition.cpp
    void loop();
    void work();
    void take_batch(net::Batch* batch);
    void carry_out_commands();
    std::uint64_t next_watermark(bool& gives_up);
    void know_what_waits();
    void process_slice(std::optional<std::uint64_t> close_at = {});
    bool collect(bool wait);
    void collect_all();
    void release(std::vector<net::Batch*>& batches);
    void account(const gpu::SliceResult& result, const InFlight& slice);
    void pipeline_is_empty();
    void fail(const std::string& reason);
    void note_failure(const std::string& reason);
    bool read_histograms(gpu::SinglesHistograms& histograms);
    enum class Reading { quick, one_moment };  ///< of the receivers' counters
    [[nodiscard]] Ledger totals(Reading reading) const;
    [[nodiscard]] std::int64_t host_ns() const;
    void publish(bool with_histograms);

    // acquisition_run.cpp
    void begin(std::unique_ptr<Run> run, const RunInterval& interval, std::function<void()> begun);
    void enter_run();
    void ask_to_stop(const std::string& reason);
    void watch_run();
    void settle_duration();
    void finish_run();
    void begin_rows(std::uint64_t until);
    std::optional<DatagramLedger> end_row(std::uint64_t watermark);
    void look_for_row(std::uint64_t newest);
    [[nodiscard]] std::uint64_t end_of_what_came(const TrackerStatus& sources) const;
    void restart_after_common_reset();
    void restart_time();

    const AcquisitionOptions options_;
    SourceTracker tracker_;
    std::unique_ptr<gpu::Pipeline> pipeline_;
    net::BatchPool& pool_;
    net::BatchQueue& filled_;
    const std::vector<const net::ReceiverCounters*> receivers_;
    const std::function<void(FinishedRun)> on_finished_;

    // The slice being gathered.
    std::vector<gpu::FrameSpan> spans_;
    std::uint64_t frames_ = 0;
    std::uint64_t abandoned_ = 0;    ///< frames gathered when the pipeline had failed
    std::vector<net::Batch*> held_;  ///< gone through since the last slice
    Clock::time_point last_slice_;
    std::int64_t now_ns_ = 0;          ///< host time for the tracker: the arrival of what is looked at
    std::vector<InFlight> in_flight_;  ///< ring of the pipeline's depth
    std::vector<std::vector<gpu::FrameSpan>> in_flight_spans_;
    std::size_t oldest_ = 0;
    std::size_t in_flight_count_ = 0;

    // What the pipeline has told.
    gpu::SliceResult result_;
    std::uint64_t watermark_ = 0;
    std::uint64_t slices_ = 0;
    std::uint64_t latest_pending_time_ = 0;
    std::uint64_t pending_ = 0;
    Ledger counted_;  ///< frames and singles always, pairs and saved singles during runs
    double busy_s_ = 0;
    Clock::time_point turn_began_ = Clock::now();  ///< of what busy_s_ does not hold yet
    double pipeline_busy_s_ = 0;
    Clock::time_point pipeline_since_;  ///< it has had slices
    std::uint64_t pending_high_water_ = 0;
    std::uint64_t free_batches_low_water_ = UINT64_MAX;
    AcquisitionProgress progress_;
    std::string failure_;
    RateLimit log_limit_{std::chrono::seconds(10)};

    const std::uint64_t most_pending_;   ///< singles; the pipeline has room for no more
    const std::uint64_t decided_after_;  ///< ticks that the watermark is past a frame when it is decided
    UndecidedArrivals arrivals_;
    std::vector<std::int64_t> decided_arrivals_;

    std::uint64_t datagrams_seen_ = 0;
    const net::Batch* batch_ = nullptr;  ///< being gone through
    std::size_t batch_seen_ = 0;         ///< its datagrams up to the present one
    std::uint64_t frames_seen_ = 0;      ///< in datagrams that are used
    std::uint64_t given_up_ = 0;
    Clock::time_point published_at_;
    Clock::time_point histograms_at_;
    /// Of any used datagram since the detector was quiet: where a run of fixed length begins.
    std::uint64_t earliest_time_ = UINT64_MAX;
    std::uint64_t newest_time_ = 0;

    std::optional<ActiveRun> waiting_;  ///< a run whose start the watermark has not reached
    std::optional<ActiveRun> run_;
    Capture* capture_ = nullptr;  ///< of either
    bool rows_may_end_;           ///< with the slice being made
    std::uint64_t row_look_ = 0;  ///< replay: detector time at which one may end next

    mutable std::mutex mutex_;  ///< guards what follows
    std::deque<std::function<void()>> commands_;
    std::atomic<bool> command_waits_{false};  ///< spares the lock when there is none
    std::shared_ptr<const AcquisitionSnapshot> published_;

    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace petacq::daemon
