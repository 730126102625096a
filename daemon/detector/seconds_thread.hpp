// Measures the seconds in a thread of its own: the acquisition must not spend its time on the estimate of the
// randoms, the watch over the detector and the records.
#pragma once

#include <blockingconcurrentqueue.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/detector/detector_watch.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/seconds/live_sums.hpp"
#include "daemon/seconds/meter.hpp"
#include "daemon/seconds/second.hpp"
#include "daemon/synchrony/synchrony.hpp"
#include "daemon/system/first_failure.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "net/base/counter.hpp"

namespace petacq::daemon {

/// How well the measurement of seconds keeps up, since the daemon started.
struct SecondsPace {
    double busy_s = 0;          ///< time spent on it, but for waits for the disk
    std::uint64_t waiting = 0;  ///< seconds that have been handed over and are not in work yet
    std::uint64_t stalls = 0;   ///< times that who hands over had to wait for it, but for waits for the disk
};

/// The latest second, and the sums over all seconds since the daemon started.
struct SecondsView {
    std::shared_ptr<const Second> second;  ///< the latest; nullptr: none yet
    SecondsTotal seconds;                  ///< since the daemon started
    SecondsPace pace;
    std::shared_ptr<const std::vector<DetectorFault>> detector_faults;  ///< in `second`; nullptr: none
};

/// Sums over the seconds of a run.
struct SecondsOfRun {
    SecondsTotal total;
    std::optional<double> live;         ///< LiveSums::mean()
    std::vector<DetectorFault> faults;  ///< each once, at its largest
};

/// One thread at a time calls all functions but failure(). What it hands over is done in that order.
///
/// A second of detector time takes milliseconds here, half a second of the largest scanners
/// (docs/design/randoms.md). So while data arrive as they are taken, seconds wait only where
/// SecondsFile::append() waits because the disk stands still, or where the host is too slow for the scanner
/// and the policy. Then add() waits, too, once there are `max_waiting` of them with the one in work: no
/// second is dropped, and SecondsPace tells. The acquisition then stands, as it does when list-mode cannot be
/// written, and the receivers drop and count what they have no room for. A replay may be faster than this
/// thread, and then waits for it.
class SecondsThread {
  public:
    struct Options {
        config::Geometry geometry;
        gpu::CoincidenceRules rules;
        std::uint64_t ticks_per_s = 0;
        std::shared_ptr<const DetectorBaseline> reference;  ///< to compare the detector with; nullptr: none
    };
    /// Gets the view in this thread, after each second and where a run starts or ends.
    using Listener = std::function<void(const SecondsView&)>;

    SecondsThread(const Options& options, Listener listener);
    /// Does what has been handed over.
    ~SecondsThread();
    SecondsThread(const SecondsThread&) = delete;
    SecondsThread& operator=(const SecondsThread&) = delete;

    /// Takes the sums of a second and leaves others of unspecified content, whose memory can be used again.
    /// `synchrony`: the latest; nullptr: not known. REQUIRES: the report has a number for each module.
    void add(gpu::TickRange range, gpu::IntervalSums& sums, BoardReport report,
             std::shared_ptr<const SynchronyReport> synchrony);
    static constexpr std::size_t max_waiting = 4;

    // These wait until everything handed over before has been done.

    /// The seconds from here on are those of a run, and go to its file, which outlives the run.
    void start_run(SecondsFile& file, std::uint64_t ticks);
    /// Detector time has started again: forgets the seconds of the run, also in its file.
    void start_run_again(std::uint64_t ticks);
    SecondsOfRun end_run();
    /// The listener will not be called before something else is handed over.
    void wait();

    /// Any thread. Why a second could not be measured; empty while all is well. No second is measured after
    /// that. The file has its own failure.
    [[nodiscard]] std::string failure() const;

  private:
    struct Task {
        std::function<void()> work;  ///< empty: the thread ends
        moodycamel::LightweightSemaphore* done = nullptr;
    };
    /// Seconds that nobody reads any more, for their memory. Readers may outlive this object.
    using Spare = moodycamel::ConcurrentQueue<std::unique_ptr<Second>>;

    std::shared_ptr<Second> new_second();
    void finish(std::function<void()> work);
    void run();
    void measure(const std::shared_ptr<Second>& second, const SynchronyReport* synchrony);
    void begin(std::uint64_t ticks);
    void show();

    const config::Geometry geometry_;
    const Listener listener_;
    const std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
    // The thread alone uses these.
    SecondsMeter meter_;
    DetectorWatch watch_;
    SecondsView view_;
    SecondsFile* file_ = nullptr;  ///< of the run in progress; nullptr: none
    SecondsOfRun of_run_;
    LiveSums live_;
    std::uint64_t taken_ = 0;  ///< seconds

    moodycamel::BlockingConcurrentQueue<Task> tasks_;
    moodycamel::ProducerToken in_order_{tasks_};  ///< also if another thread hands over what follows
    moodycamel::LightweightSemaphore room_{max_waiting};
    net::Counter added_;  ///< seconds
    net::Counter stalls_;
    std::atomic<bool> writing_{false};  ///< the thread is in SecondsFile::append()
    moodycamel::LightweightSemaphore finished_;
    FirstFailure failure_;
    std::jthread thread_;
};

}  // namespace petacq::daemon
