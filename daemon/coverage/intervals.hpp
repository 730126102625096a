// Sets of detector times: half-open intervals of ticks.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/tick_range.hpp"

namespace petacq::daemon {

/// The ranges are in order, not empty, and neither overlap nor touch: a set of times has one form. The time
/// 2^64-1 is in no set. A value: thread-safe as a vector is.
class Intervals {
  public:
    Intervals() = default;
    Intervals(gpu::TickRange range);  // NOLINT(google-explicit-constructor): a range is a set of times
    /// In any order; they may overlap, touch or be empty.
    explicit Intervals(std::vector<gpu::TickRange> ranges);

    [[nodiscard]] const std::vector<gpu::TickRange>& ranges() const { return ranges_; }
    [[nodiscard]] bool empty() const { return ranges_.empty(); }
    /// Ticks in all ranges.
    [[nodiscard]] std::uint64_t ticks() const;
    /// Ticks of `range` that are in the set.
    [[nodiscard]] std::uint64_t ticks_in(gpu::TickRange range) const;
    [[nodiscard]] bool contains(std::uint64_t time) const { return range_at(time).ticks() != 0; }
    /// The range that has the time; empty if none has.
    [[nodiscard]] gpu::TickRange range_at(std::uint64_t time) const;
    /// From the first time to the end of the last range; {0, 0} when empty.
    [[nodiscard]] gpu::TickRange span() const;

    [[nodiscard]] Intervals intersect(const Intervals& other) const;
    [[nodiscard]] Intervals unite(const Intervals& other) const;
    /// The times that `other` has not.
    [[nodiscard]] Intervals without(const Intervals& other) const;
    bool operator==(const Intervals&) const = default;

  private:
    std::vector<gpu::TickRange> ranges_;
};

}  // namespace petacq::daemon
