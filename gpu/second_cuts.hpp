// Where slices end so that the sums of the pipeline are those of one second of detector time each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/tick_range.hpp"

namespace petacq::gpu {

/// Follows the watermark. Detector time is divided at the multiples of a second, and where a segment ends. A
/// slice decides the openers that lie more than window + delay before its watermark, so that the slice with
/// the watermark B + window + delay ends the second before B. If a segment ends after B and before that
/// watermark, both ends fall together: the second is longer by so little.
class SecondCuts {
  public:
    /// `second` in ticks, at least 1; `reach`: window + delay.
    SecondCuts(std::uint64_t second, std::uint64_t reach) : second_(second), reach_(reach) {}

    /// The watermark moves from `from` to `to`. Calls cut(watermark, range) for each slice that has to end a
    /// second on the way, with a watermark in (from, to]. Time before `earliest` holds no singles
    /// (UINT64_MAX: no time does). After a jump of many seconds, those in the middle are one long range.
    template <class Cut>
    void advance(std::uint64_t from, std::uint64_t to, std::uint64_t earliest, Cut cut) {
        if (earliest == UINT64_MAX || to < reach_) return;
        start_ = std::max(start_, earliest / second_ * second_);
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
    /// A segment ends at `at`, not below any cut.
    TickRange close(std::uint64_t at) {
        const TickRange range{std::min(start_, at), at};
        start_ = at;
        return range;
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
