// The slice that is being filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/tracking/source_tracker.hpp"
#include "gpu/pipeline.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

/// Frames that go through the pipeline together, and the batches that may go back after them.
struct SliceContents {
    std::vector<gpu::FrameSpan> spans;
    std::vector<net::Batch*> batches;
    std::uint64_t frames = 0;
};

/// Accepted datagrams are added as spans; they point into their batch. No thread-safety.
class SliceBuilder {
  public:
    /// A slice is full with `slice_frames` frames. `batch_count`: batches in the pool.
    SliceBuilder(std::uint32_t slice_frames, std::size_t batch_count)
        : slice_frames_(slice_frames), batch_count_(batch_count) {
        contents_.batches.reserve(batch_count);
    }

    void add(const net::Batch& batch, const net::Datagram& datagram, const Verdict& verdict) {
        contents_.spans.push_back({batch.data + datagram.offset, datagram.frames, verdict.time_low,
                                   verdict.time_high, verdict.source + 1});
        contents_.frames += datagram.frames;
    }
    /// A batch that has been read completely. It goes back with this slice: its last frames are in this slice
    /// or in an earlier one.
    void keep(net::Batch* batch) { contents_.batches.push_back(batch); }

    /// Frames outside the times of the verdict become time jumps.
    void restrict_times(const Verdict& verdict) {
        for (gpu::FrameSpan& span : contents_.spans) {
            span.time_low = std::max(span.time_low, verdict.time_low);
            span.time_high = std::min(span.time_high, verdict.time_high);
        }
    }

    [[nodiscard]] bool empty() const { return contents_.spans.empty(); }
    [[nodiscard]] bool full() const { return contents_.frames >= slice_frames_; }
    [[nodiscard]] std::uint64_t frames() const { return contents_.frames; }
    /// The slice keeps a quarter of the pool: with small batches it would otherwise never be full.
    [[nodiscard]] bool keeps_too_many() const { return contents_.batches.size() * 4 >= batch_count_; }

    /// The caller may take the contents and leave an empty slice.
    [[nodiscard]] SliceContents& contents() { return contents_; }

  private:
    const std::uint64_t slice_frames_;
    const std::size_t batch_count_;
    SliceContents contents_;
};

}  // namespace petacq::daemon
