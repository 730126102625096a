// The pipeline, its slices in flight, and its failure state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/acquisition/batch_exchange.hpp"
#include "daemon/acquisition/slice_builder.hpp"
#include "daemon/acquisition/snapshot.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::daemon {

/// Where a slice ends in detector time.
struct SliceEnd {
    std::uint64_t watermark = 0;                      ///< ticks; gpu::Slice says what it promises
    std::optional<std::uint64_t> close_at;            ///< ticks; gpu::Slice says where it may lie
    std::optional<DatagramLedger> row;                ///< of a slice that ends a row of the ledger over time
    std::optional<gpu::TickRange> second = {};        ///< of a slice that ends a second
    std::optional<std::uint64_t> decide_before = {};  ///< ticks; gpu::Slice says what it means
};

/// How many accepted singles and tags the pipeline still holds. Most of them wait for the watermark.
struct Waiting {
    std::uint64_t singles = 0;
    std::uint64_t tags = 0;
};

/// A slice that has come out of the pipeline.
struct CollectedSlice {
    gpu::SliceResult result;
    SliceEnd end;
};

/// Owns the pipeline and the slices in flight. No function throws: a pipeline that throws, or that holds too
/// many undecided singles, has failed for good. A failed feed has destroyed the pipeline and returned its
/// batches, returns those of further slices at once, and yields no further results.
///
/// No thread-safety: one owner, the acquisition thread.
class PipelineFeed {
  public:
    /// `max_pending`: undecided singles and tags beyond which the feed fails. All references must outlive
    /// the feed.
    PipelineFeed(std::unique_ptr<gpu::Pipeline> pipeline, std::uint64_t max_pending, BatchExchange& batches,
                 AcquisitionProgress& progress);

    /// Takes the contents of a slice and leaves them empty. REQUIRES: not full(). Only reset() lowers the
    /// watermark. Returns false if the feed had failed before.
    bool submit(SliceContents& contents, const SliceEnd& end);
    /// The oldest slice in flight, its batches returned; valid until the next call. nullptr when none is in
    /// flight, when the pipeline has failed, and, unless `wait`, when the slice is not ready. The records may
    /// be swapped for other memory, which the pipeline then uses.
    CollectedSlice* collect(bool wait);
    /// Histograms as of the latest collected slice. Returns false when the pipeline has failed.
    bool histograms(gpu::SinglesHistograms& out);
    /// In slices submitted from now on, frames with raw times in this range count in the spectra, if the
    /// pipeline has any. Absent: none.
    void count_spectra(std::optional<gpu::TickRange> times) { spectra_ = times; }
    /// gpu::Pipeline::take_spectra(). Only when nothing is in flight. Returns false when the pipeline has
    /// failed.
    bool take_spectra(config::Spectra& out);
    /// gpu::Pipeline::unit_spectra(). Returns false when the pipeline has failed.
    bool unit_spectra(std::uint32_t unit, gpu::UnitSpectra& out);
    /// gpu::Pipeline::set_calibration(). Only when nothing is in flight. Returns why it failed, "" if it did
    /// not. Afterwards the pipeline continues with the previous calibration.
    std::string set_calibration(const config::Calibration& calibration);
    /// The pipeline forgets undecided singles and the watermark. Only when nothing is in flight. Returns
    /// false when the pipeline has failed.
    bool reset();

    /// Fails the feed for a reason outside the pipeline. The first failure counts.
    void fail(const std::string& reason);
    [[nodiscard]] bool failed() const { return !failure_.empty(); }
    /// "pipeline: " and the reason; empty: none.
    [[nodiscard]] const std::string& failure() const { return failure_; }

    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] bool full() const { return count_ == slots_.size(); }
    /// Slices submitted and not collected, including those lost in a failed pipeline.
    [[nodiscard]] std::uint64_t frames_in_flight() const { return frames_in_flight_; }
    /// The watermark of the latest submitted slice; 0 after reset().
    [[nodiscard]] std::uint64_t watermark() const { return watermark_; }
    /// Undecided singles and tags, as of the latest collected slice; their sum; and the newest time among
    /// them.
    [[nodiscard]] const Waiting& waiting() const { return waiting_; }
    [[nodiscard]] std::uint64_t pending() const { return waiting_.singles + waiting_.tags; }
    [[nodiscard]] std::uint64_t latest_pending_time() const { return latest_pending_time_; }
    /// The largest pending() since the high water was last restarted.
    [[nodiscard]] std::uint64_t pending_high_water() const { return pending_high_water_; }
    void restart_high_water() { pending_high_water_ = pending(); }
    /// Time with a slice in the pipeline.
    [[nodiscard]] const BusyTime& busy() const { return busy_; }

  private:
    struct SubmittedSlice {
        SliceContents contents;
        SliceEnd end;
    };

    template <class Call>
    bool attempt(Call call);

    const std::uint64_t max_pending_;
    BatchExchange& batches_;
    AcquisitionProgress& progress_;
    std::vector<SubmittedSlice> slots_;  ///< a ring as long as the pipeline's depth
    std::size_t oldest_ = 0;
    std::size_t count_ = 0;
    CollectedSlice collected_;  ///< reused, with the memory of its vectors
    Waiting waiting_;
    std::uint64_t pending_high_water_ = 0;
    std::uint64_t latest_pending_time_ = 0;
    std::uint64_t slices_ = 0;
    std::uint64_t watermark_ = 0;
    std::uint64_t frames_in_flight_ = 0;
    std::optional<gpu::TickRange> spectra_;
    BusyTime busy_;
    std::string failure_;
    std::unique_ptr<gpu::Pipeline>
        pipeline_;  ///< destroyed first, because it may still read the slots; nullptr: failed
};

}  // namespace petacq::daemon
