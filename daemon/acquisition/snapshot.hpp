// The acquisition thread as other threads see it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/detector/seconds_thread.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/tap/tap.hpp"
#include "daemon/tracking/source_tracker.hpp"
#include "gpu/pipeline.hpp"
#include "net/base/counter.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// Any thread may read it at any moment, also while the acquisition thread is held up.
struct AcquisitionProgress {
    net::Counter turns;      ///< of the loop
    net::Counter submitted;  ///< slices given to the pipeline
    net::Counter collected;  ///< slices taken back; fewer than submitted: the pipeline is at work
};

/// Adds up the time between start() and stop(). No thread-safety.
class BusyTime {
  public:
    using Clock = std::chrono::steady_clock;

    void start() {
        since_ = Clock::now();
        busy_ = true;
    }
    void stop() {
        seconds_ = seconds(Clock::now());
        busy_ = false;
    }
    /// Includes the time since start() while busy.
    [[nodiscard]] double seconds(Clock::time_point now) const {
        return seconds_ + (busy_ ? std::chrono::duration<double>(now - since_).count() : 0);
    }

  private:
    double seconds_ = 0;
    Clock::time_point since_;
    bool busy_ = false;
};

/// A consistent view of the acquisition thread, as of its latest slice. The seconds are those measured so
/// far: a run starts and ends with all of its own.
struct AcquisitionSnapshot : SecondsView {
    std::chrono::steady_clock::time_point taken;
    std::uint64_t bytes_received = 0;  ///< UDP payload, since the daemon started
    Ledger total;                      ///< since the daemon started; without pairs, triples and saved singles
    std::optional<Ledger> run;         ///< since the run started
    /// Ticks: where the data of the run begin; absent: they have not begun.
    std::optional<std::uint64_t> run_start;
    TrackerStatus sources;
    std::uint64_t watermark = 0;  ///< ticks, of the latest slice
    std::shared_ptr<const gpu::SinglesHistograms>
        histograms;  ///< since the daemon started; read every second
    std::chrono::steady_clock::time_point histograms_taken;
    std::shared_ptr<const gpu::SinglesHistograms> histograms_before;  ///< the previous reading; null at first
    std::chrono::steady_clock::time_point histograms_before_taken;
    std::shared_ptr<const SynchronyReport> synchrony;  ///< the latest; nullptr: nothing is known yet
    std::vector<gpu::Tag> latest_tags;                 ///< the latest of each channel and kind, in that order
    std::uint64_t pending = 0;                         ///< singles and tags that wait for the watermark
    std::uint64_t given_up = 0;            ///< slices whose watermark passed waiting sources to save memory
    double busy_s = 0;                     ///< time not spent waiting for batches
    double pipeline_busy_s = 0;            ///< time with a slice in the pipeline
    std::uint64_t pending_high_water = 0;  ///< since a run started, or since the daemon did
    std::uint64_t free_batches_low_water = 0;  ///< likewise; as seen between batches
    TapStatistics tap;
    std::string failure;  ///< of the pipeline; empty: none
};

/// Holds the latest snapshot. Any thread reads.
class SnapshotBoard {
  public:
    /// The acquisition thread. The snapshot takes over the seconds of the snapshot before it, and, if it has
    /// none, the histograms.
    void publish(std::shared_ptr<AcquisitionSnapshot> snapshot);
    /// The thread that measures the seconds. Returns whether the latest second is another one.
    bool publish(const SecondsView& seconds);
    /// Any thread.
    [[nodiscard]] std::shared_ptr<const AcquisitionSnapshot> latest() const;

    // When the acquisition thread publishes: these return true once per interval.
    bool due(std::chrono::steady_clock::time_point now);
    bool histograms_due(std::chrono::steady_clock::time_point now);

  private:
    std::chrono::steady_clock::time_point published_at_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point histograms_at_ = published_at_;
    mutable net::Mutex mutex_;
    std::shared_ptr<const AcquisitionSnapshot> latest_ PETACQ_GUARDED_BY(mutex_);  ///< nullptr: none yet
};

}  // namespace petacq::daemon
