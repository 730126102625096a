// Tags on the host: which of them are accepted, and how long they wait for the watermark. Used by both
// back-ends. Tags are rare; a sender of nothing but tags is bounded by the frames of a slice, and by
// SliceResult::pending_tags.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/pipeline.hpp"
#include "gpu/rules/conversion.hpp"

namespace petacq::gpu {

/// The tags of some frames of a slice: their counts, and those that are accepted.
struct AcceptedTags {
    TagCounts counts;
    std::vector<Tag> tags;

    /// Takes a frame for which is_tag() is true, of a span that accepts the raw times `guard`. Tags below
    /// `late_below` are late.
    void take(net::FrameWords frame, std::uint16_t source, const TimeGuard& guard, std::uint64_t late_below,
              net::FrameVersion version);
    void clear();
};

/// The tags that wait for the watermark, slice by slice.
class WaitingTags {
  public:
    /// Adds tags of the slice, in any order.
    void add(std::span<const Tag> tags);
    /// Moves those that the slice decides to `out`, which is overwritten, in order: all below `close_at` or,
    /// without one, below `watermark`.
    void release(std::uint64_t watermark, std::optional<std::uint64_t> close_at, RecordVector<Tag>& out);
    /// After release(): SliceResult::pending_tags, and latest_pending_time if that is later.
    void describe(SliceResult& result) const;
    void reset() { waiting_.clear(); }

  private:
    // A heap, the earliest first: however many wait, a slice costs no more than its own tags.
    std::vector<Tag> waiting_;
    std::uint64_t newest_ = 0;  // time of the newest that waits, if any does
};

}  // namespace petacq::gpu
