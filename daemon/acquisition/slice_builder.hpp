// The slice that is being filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "daemon/tracking/verdict.hpp"
#include "gpu/pipeline.hpp"
#include "net/batch.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

/// Frames that go through the pipeline together, and the batches that may go back after them.
struct SliceContents {
    std::vector<gpu::FrameSpan> spans;
    std::vector<net::Batch*> batches;
    std::uint64_t frames = 0;
};

/// Accepted datagrams are added as spans; they point into their batch. If the caller does not take a full
/// slice, it waits, and the next one is filled. No thread-safety.
class SliceBuilder {
  public:
    /// A slice is full with `slice_frames` frames. `batch_count`: batches in the pool.
    SliceBuilder(std::uint32_t slice_frames, std::size_t batch_count)
        : slice_frames_(slice_frames), batch_count_(batch_count) {
        contents_.batches.reserve(batch_count);
    }

    /// Age and batches count from here.
    void start(std::int64_t now_ns) {
        started_ns_ = now_ns;
        batches_ = 0;
    }
    void add(const net::Batch& batch, const net::Datagram& datagram, const Verdict& verdict) {
        if (full()) {
            waiting_frames_ += contents_.frames;
            waiting_.push_back({std::exchange(contents_.spans, {}), {}, std::exchange(contents_.frames, 0)});
        }
        contents_.spans.push_back({batch.data + datagram.offset, datagram.frames, verdict.time_low,
                                   verdict.time_high, verdict.source + 1, verdict.tag_source});
        contents_.frames += datagram.frames;
    }
    /// A group that has_room(); a verdict for each of its trains. Datagrams of a train that lie at equal
    /// distances become one span.
    void add(const net::Group& group, std::span<const Verdict> verdicts) {
        const net::Member* before = nullptr;
        for (const net::Member& member : group.members()) {
            const std::uint32_t frames = group.trains()[member.train].frames;
            contents_.frames += frames;
            const bool joined = before != nullptr && before->train == member.train &&
                                join_datagram(contents_.spans.back(), member.offset - before->offset);
            before = &member;
            if (joined) continue;
            const Verdict& verdict = verdicts[member.train];
            contents_.spans.push_back({group.data() + member.offset, frames, verdict.time_low,
                                       verdict.time_high, verdict.source + 1, verdict.tag_source});
        }
    }
    /// Whether this many more frames fit into the slice.
    [[nodiscard]] bool has_room(std::uint64_t frames) const {
        return contents_.frames + frames <= slice_frames_;
    }
    /// A batch that has been read completely. It goes back with this slice: its last frames are in this slice
    /// or in an earlier one.
    void keep(net::Batch* batch) {
        contents_.batches.push_back(batch);
        ++batches_;
    }

    /// Frames outside the times of `verdict_on(source)` become time jumps.
    template <class VerdictOn>
    void restrict_times(VerdictOn verdict_on) {
        for (SliceContents& slice : waiting_)
            restrict_times(slice, verdict_on);
        restrict_times(contents_, verdict_on);
    }

    [[nodiscard]] bool empty() const { return contents_.spans.empty(); }
    [[nodiscard]] bool full() const { return contents_.frames >= slice_frames_; }
    /// Also of the slices that wait.
    [[nodiscard]] std::uint64_t frames() const { return waiting_frames_ + contents_.frames; }
    [[nodiscard]] std::int64_t age_ns(std::int64_t now_ns) const { return now_ns - started_ns_; }
    /// A quarter of the pool has been read: with small batches a slice would otherwise never be full. Batches
    /// count whether or not they have gone back, so that the speed of the pipeline does not matter.
    [[nodiscard]] bool has_many_batches() const { return batches_ * 4 >= batch_count_; }

    /// The slices that wait come before contents(), and keep no batches.
    [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
    /// Takes out the oldest one.
    SliceContents take_waiting() {
        SliceContents oldest = std::move(waiting_.front());
        waiting_.pop_front();
        waiting_frames_ -= oldest.frames;
        return oldest;
    }
    /// The caller may take the contents and leave an empty slice.
    [[nodiscard]] SliceContents& contents() { return contents_; }

  private:
    /// Adds a datagram to the span, this many bytes behind its last one, if it fits.
    static bool join_datagram(gpu::FrameSpan& span, std::uint32_t distance) {
        constexpr std::uint32_t max_between = 64;  // bytes: a header, and what fills up a slot
        const auto bytes = static_cast<std::uint32_t>(span.count * net::frame_bytes);
        const bool fits = span.datagrams == 1 ? distance - bytes <= max_between : distance == span.stride;
        if (!fits) return false;
        span.stride = distance;
        ++span.datagrams;
        return true;
    }
    template <class VerdictOn>
    static void restrict_times(SliceContents& slice, VerdictOn verdict_on) {
        for (gpu::FrameSpan& span : slice.spans) {
            const Verdict verdict = verdict_on(span.source - 1);
            span.time_low = std::max(span.time_low, verdict.time_low);
            span.time_high = std::min(span.time_high, verdict.time_high);
        }
    }

    const std::uint64_t slice_frames_;
    const std::size_t batch_count_;
    std::int64_t started_ns_ = 0;  ///< host time
    std::size_t batches_ = 0;      ///< read since then
    std::deque<SliceContents> waiting_;
    std::uint64_t waiting_frames_ = 0;
    SliceContents contents_;
};

}  // namespace petacq::daemon
