// From the datagrams of a batch to the results of the pipeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/acquisition/account.hpp"
#include "daemon/acquisition/options.hpp"
#include "daemon/acquisition/pipeline_feed.hpp"
#include "daemon/acquisition/received_times.hpp"

namespace petacq::daemon {

/// Tracks the sources, fills slices, and sends them through the pipeline. It is not aware of runs, clocks or
/// threads: host time (`now_ns`) is an argument. No thread-safety.
class SliceFlow {
  public:
    using Sink = std::function<void(const CollectedSlice&)>;
    struct Watermark {
        std::uint64_t ticks = 0;
        bool gives_up = false;  ///< passes sources for which it would normally wait
    };

    /// `sink` gets each collected slice, in order. All references must outlive this object.
    SliceFlow(const AcquisitionOptions& options, const TrackerOptions& tracker,
              std::unique_ptr<gpu::Pipeline> pipeline, BatchExchange& batches,
              std::vector<const net::ReceiverCounters*> receivers, AcquisitionProgress& progress, Sink sink);

    /// Adds a datagram to the slice if it is accepted. Returns the time of its last frame if it has frames
    /// and the time is believed.
    std::optional<std::uint64_t> add(const net::Batch& batch, const net::Datagram& datagram,
                                     std::int64_t now_ns);
    /// All datagrams of the batch have been added. The batch returns after the pipeline has used it.
    void keep(net::Batch* batch);
    /// The slice has all the frames it may have.
    [[nodiscard]] bool full() const { return builder_.full(); }
    /// The slice should be submitted now, full or not.
    [[nodiscard]] bool due(SliceBuilder::Clock::time_point now) const {
        return builder_.due(now, options_.slice_interval);
    }
    /// Until the next slice is due, unless it fills earlier.
    void restart_interval() { builder_.restart_interval(); }

    /// The watermark that the sources allow; never below the present one.
    Watermark next_watermark(std::int64_t now_ns);
    /// Whether a slice with this watermark would hold frames or move the watermark.
    [[nodiscard]] bool has_news(std::uint64_t watermark) const {
        return !builder_.empty() || watermark != feed_.watermark();
    }
    /// Submits the slice; waits for room in the pipeline. Returns false when the pipeline had failed.
    bool submit(const SliceEnd& end);
    /// Submits the slice and ends the segment at `close_at`, not below the watermark.
    void close_segment(std::uint64_t close_at);
    /// Hands a slice that is ready to the sink. Returns false when there is none.
    bool collect() { return collect(false); }
    void collect_all();
    /// Returns the batches of a slice that is empty or will not be submitted any more.
    void give_back_batches() { batches_.give_back(builder_.contents().batches); }
    /// Decides all pending singles and forgets detector time. Returns false if the pipeline has failed.
    bool restart_time();

    [[nodiscard]] PipelineFeed& pipeline() { return feed_; }
    [[nodiscard]] std::uint64_t watermark() const { return feed_.watermark(); }
    [[nodiscard]] const ReceivedTimes& received() const { return received_; }
    /// Past all believed frames, so that a wild one does not prolong a run, and not below the watermark.
    [[nodiscard]] std::uint64_t end_of_received(const TrackerStatus& sources) const;
    [[nodiscard]] TrackerStatus sources(std::int64_t now_ns) const { return tracker_.status(now_ns); }
    /// Everything since the daemon started; without what only the run knows.
    [[nodiscard]] Ledger total(Account::Reading reading) const;
    /// Fills in what is known here.
    void describe(AcquisitionSnapshot& snapshot, std::int64_t now_ns) const;

  private:
    bool collect(bool wait);

    const AcquisitionOptions options_;
    const Sink sink_;
    BatchExchange& batches_;
    SourceTracker tracker_;
    ReceivedTimes received_;
    Account account_;
    SliceBuilder builder_;
    PipelineFeed feed_;
};

}  // namespace petacq::daemon
