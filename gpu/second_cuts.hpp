// Where slices end so that the sums of the pipeline are those of one second of detector time each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gpu/tick_range.hpp"

namespace petacq::gpu {

/// Follows the watermark. Detector time is divided at the multiples of a second, where data begin, and where
/// a segment ends. A slice decides the openers that lie more than window + delay before its watermark, so
/// that the slice with the watermark B + window + delay ends the second before B. Where a segment ends before
/// that watermark, a slice that decides only what lies before B (Slice::decide_before) ends the second.
class SecondCuts {
  public:
    /// `second` in ticks, at least 1; `reach`: window + delay.
    SecondCuts(std::uint64_t second, std::uint64_t reach) : second_(second), reach_(reach) {}

    /// The watermark moves from `from` to `to`. Calls cut(watermark, range) for each slice that has to end a
    /// second on the way, with a watermark in (from, to]. `begin`: where data begin; no time before it is in
    /// a second (UINT64_MAX: no time is). After a jump of many seconds, those in the middle are one long
    /// range.
    template <class Cut>
    void advance(std::uint64_t from, std::uint64_t to, std::uint64_t begin, Cut cut) {
        if (begin == UINT64_MAX || to < reach_) return;
        start_ = std::max(start_, begin);
        const std::uint64_t ended = from < reach_ ? 0 : (from - reach_) / second_;
        const std::uint64_t first = std::max(ended, start_ / second_) + 1;
        const std::uint64_t last = (to - reach_) / second_;
        for (std::uint64_t k = first; k <= last; ++k) {
            if (k - first == most_ && last - k > most_) k = last - most_;
            const TickRange range{start_, k * second_};
            start_ = range.end;
            cut(range.end + reach_, range);
        }
    }
    /// A segment ends at `at`, not below any cut. Calls cut(range) for each second that ends before it.
    /// Returns the last second, which ends with the segment; it is empty if no data lie in it.
    template <class Cut>
    TickRange close(std::uint64_t at, std::uint64_t begin, Cut cut) {
        if (begin < at) start_ = std::max(start_, begin);
        if (begin >= at || start_ >= at) {
            start_ = std::max(start_, at);
            return {at, at};
        }
        const std::uint64_t first = start_ / second_ + 1;
        const std::uint64_t last = (at - 1) / second_;
        for (std::uint64_t k = first; k <= last; ++k) {
            if (k - first == most_ && last - k > most_) k = last - most_;
            cut(TickRange{std::exchange(start_, k * second_), k * second_});
        }
        return {std::exchange(start_, at), at};
    }
    /// Detector time starts again.
    void restart() { start_ = 0; }

  private:
    static constexpr std::uint64_t most_ = 100;  ///< seconds before and after a jump

    const std::uint64_t second_;
    const std::uint64_t reach_;
    std::uint64_t start_ = 0;  ///< of the second that is open
};

}  // namespace petacq::gpu
