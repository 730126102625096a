// From the datagrams of a batch to the results of the pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/acquisition/account.hpp"
#include "daemon/acquisition/data_begin.hpp"
#include "daemon/acquisition/options.hpp"
#include "daemon/acquisition/pipeline_feed.hpp"
#include "daemon/acquisition/undecided_frames.hpp"
#include "daemon/detector/board_presence.hpp"
#include "daemon/detector/board_readings.hpp"
#include "daemon/tracking/copy_watch.hpp"
#include "daemon/tracking/open_datagrams.hpp"
#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

/// Tracks the sources, fills slices, and sends them through the pipeline. It is not aware of runs, clocks or
/// threads: host time (`now_ns`) is an argument. No thread-safety.
class SliceFlow {
  public:
    using Sink = std::function<void(CollectedSlice&)>;
    struct SliceWatermark {
        std::uint64_t ticks = 0;
        bool gives_up = false;  ///< passes sources for which it would normally wait
    };

    /// `sink` gets each collected slice, in order. All references must outlive this object.
    SliceFlow(const AcquisitionOptions& options, const TrackerOptions& tracker, PipelineFeed& feed,
              BatchExchange& batches, std::vector<const net::ReceiverCounters*> receivers, Sink sink);

    /// Adds a group to the slice at once, if that is the same as to add its datagrams one by one; else does
    /// nothing and returns false. Returns true only where all its times are believed.
    bool add_group(const net::Group& group, std::int64_t now_ns);
    /// Adds a datagram to the slice if it is accepted. Returns the time of its last frame if it has frames
    /// and the time is believed, else 0 (also for the time 0, which ends no step and has no latency).
    std::uint64_t add(const net::Batch& batch, const net::Datagram& datagram, std::int64_t now_ns);
    /// All datagrams of the batch have been added. The batch returns after the pipeline has used it.
    void keep(net::Batch* batch);
    /// Whether the slice must be submitted: it has all the frames it may have, or many batches have been
    /// read. Before detector time begins, frames wait to be judged by it, and the slice must be submitted
    /// when there is no room for more.
    [[nodiscard]] bool full() const {
        if (builder_.has_many_batches()) return true;
        return builder_.full() && (time().established() || too_many_wait());
    }
    /// Whether the slice should be submitted because it is old, or old enough for a pipeline that is idle.
    /// Not before detector time begins.
    [[nodiscard]] bool old(std::int64_t now_ns) const;
    /// The slice is about to be submitted, and the next one starts. Before detector time begins, its frames
    /// are judged by the times of their own source. When max_pending_singles wait, detector time begins with
    /// the sources that are proven; without any, all other frames are time jumps.
    void start_slice(std::int64_t now_ns);

    /// The watermark that the sources allow; never below the present one.
    SliceWatermark next_watermark(std::int64_t now_ns);
    /// Whether an idle pipeline should soon take the slice (AcquisitionOptions::few_frames).
    [[nodiscard]] bool has_many_frames() const {
        return builder_.frames() > options_.slice_frames / AcquisitionOptions::few_frames;
    }
    /// Whether a slice with this watermark would hold frames or move the watermark.
    [[nodiscard]] bool has_news(std::uint64_t watermark) const {
        return !builder_.empty() || watermark != feed_.watermark();
    }
    /// Submits the slice, divided where seconds end; waits for room in the pipeline. Returns false when the
    /// pipeline had failed. REQUIRES: a segment ends where the slice does, if at all.
    bool submit(SliceEnd end);
    /// Submits the slice and ends the segment at `close_at`, not below the watermark.
    void close_segment(std::uint64_t close_at);
    /// Hands a slice that is ready to the sink. Returns false when there is none.
    bool collect() { return collect(false); }
    void collect_all();
    /// Returns the batches of a slice that is empty or will not be submitted any more.
    void give_back_batches() { batches_.give_back(builder_.contents().batches); }
    /// Decides all pending singles and forgets detector time. Returns false if the pipeline has failed.
    bool restart_time(std::int64_t now_ns);
    /// Decides all pending singles; detector time then continues where the sources agree. REQUIRES:
    /// time().went_back().
    bool follow_reset(std::int64_t now_ns);
    /// Frames submitted from now on are converted with this calibration, whose time offsets are at most
    /// `max_offset` ticks; what has been converted stays as it is. Returns why that failed, "" if it did not.
    std::string set_calibration(const config::Calibration& calibration, std::uint64_t max_offset);
    /// From this time on, all frames are converted with the calibration in use: those with such times come
    /// after set_calibration(). Runs start here at the earliest. 0: at any time.
    [[nodiscard]] std::uint64_t calibrated_from() const { return calibrated_from_; }
    /// Largest magnitude of a time offset, in ticks.
    [[nodiscard]] std::uint64_t max_offset() const { return max_offset_; }
    /// Begins detector time with what has been received.
    void establish_time(std::int64_t now_ns);
    [[nodiscard]] const DetectorTime& time() const { return tracker_.time(); }
    /// SourceTracker::mark and SourceTracker::allow_repetition.
    void mark_sources() { tracker_.mark(); }
    void allow_repetition(std::int64_t now_ns) { tracker_.allow_repetition(now_ns); }

    /// The newest believed frame time since detector time began; absent: none.
    [[nodiscard]] std::optional<std::uint64_t> newest() const;
    /// Past all believed frames, so that a wild one does not prolong a run, and not below the watermark.
    [[nodiscard]] std::uint64_t end_of_received() const;
    /// Coincidences, saved singles and tags found since the daemon started.
    [[nodiscard]] std::uint64_t records_found() const { return account_.records_found(); }
    /// Returns the report of the boards for a second. Call it once for each second, in order, when the last
    /// slice of the second has just been collected.
    /// REQUIRES: measured by second.
    [[nodiscard]] BoardReport report_on(gpu::TickRange second);
    /// Submits the slice, and returns a time past everything received, decided or not.
    std::uint64_t end_of_input();
    /// Everything since the daemon started; without what only the run knows.
    [[nodiscard]] Ledger total(Account::ReadingMode reading) const;
    /// A run that holds the times from `from` on starts to wait for its data.
    void watch_data(std::uint64_t from, std::int64_t now_ns);
    /// Where data begin: of the run, or without one of detector time. UINT64_MAX: no data yet, or earlier
    /// ones may still come when the watermark is `watermark`.
    [[nodiscard]] std::uint64_t data_begin(std::uint64_t watermark) const;
    /// The same as far as it is known when nothing more is to come.
    [[nodiscard]] std::optional<std::uint64_t> data_begin_so_far() const;
    /// Whether frames from the time of watch_data() on may be of a time before this one, at which data begin.
    [[nodiscard]] bool has_frames_before(std::uint64_t begin) const {
        return earliest_taken_ < add_or_max(begin, max_offset_);
    }
    /// Whether more may wait for the watermark than is undecided now.
    [[nodiscard]] bool more_may_wait() const {
        return undecided_.count_from(feed_.watermark()) < options_.max_pending_singles / 2;
    }
    /// A run is asked for: the time of day is that of the data from now on.
    void watch_clock();
    /// Data begin at this time at the earliest, until detector time starts again.
    void cover_from(std::uint64_t ticks) { covered_from_ = ticks; }
    /// The datagram that tells the time of day of the run.
    [[nodiscard]] std::optional<DataBegin::FrameArrival> arrival() const {
        return begin_of_members(begin_).arrival();
    }
    /// Past everything that has arrived; 0: nothing has.
    [[nodiscard]] std::uint64_t data_end() const;
    /// Fills in what is known here.
    [[nodiscard]] TrackerStatus sources(std::int64_t now_ns) const { return tracker_.status(now_ns); }
    void describe(AcquisitionSnapshot& snapshot, std::int64_t now_ns) const;

  private:
    bool collect(bool wait);
    bool decide_all();
    void make_room();
    void end_seconds(SliceEnd& end);
    [[nodiscard]] DataBegin begin_of_members(DataBegin begin) const;
    [[nodiscard]] std::optional<std::uint64_t> begin_ticks(const DataBegin& begin) const;
    void look_for_begin(const net::Batch& batch, const net::Datagram& datagram, const Verdict& verdict);
    [[nodiscard]] bool too_many_wait() const;
    [[nodiscard]] bool is_simple(const net::Group& group) const;
    void judge_held_frames();
    bool hold_open(const net::Datagram& datagram, Verdict verdict, std::int64_t now_ns);
    void release_open(std::int64_t now_ns, bool all);
    void read_besides_hits(const net::Datagram& datagram, const Verdict& verdict);

    const AcquisitionOptions options_;
    const Sink sink_;
    PipelineFeed& feed_;
    BatchExchange& batches_;
    SourceTracker tracker_;
    DataBegin begin_;
    bool begin_settled_ = false;                 ///< no frame can change begin_ any more
    std::uint64_t earliest_taken_ = UINT64_MAX;  ///< since watch_data(), until begin_ is settled
    std::uint64_t latest_single_ = 0;            ///< of all that were undecided when a slice was collected
    bool input_ended_ = false;
    std::uint64_t earliest_held_ = UINT64_MAX;  ///< before detector time begins
    std::optional<std::uint64_t> newest_held_;  ///< likewise
    UndecidedFrames undecided_;
    std::uint64_t max_offset_;
    std::uint64_t calibrated_from_ = 0;
    std::uint64_t covered_from_ = 0;
    OpenDatagrams open_;
    std::int64_t open_decided_ns_ = 0;  ///< the decision on detector time by which they were judged last
    Account account_;
    SliceBuilder builder_;
    std::vector<Verdict> verdicts_;          ///< on the trains of a group
    std::optional<gpu::SecondCuts> cuts_;    ///< absent: nothing is measured by second
    std::optional<CopyWatch> copies_;        ///< with bare framing
    std::optional<BoardReadings> readings_;  ///< likewise
    std::optional<BoardPresence> presence_;  ///< likewise
};

}  // namespace petacq::daemon
