// The time blocks of events in a PETSIRD file: whole milliseconds from the first recorded time on. They cover
// what the records cover, and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/coverage/intervals.hpp"

namespace petacq::petsird {

/// A time in which records can be, in ticks and in the milliseconds that hold it, and its time blocks.
struct Range {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t begin_ms = 0;
    std::uint64_t end_ms = 0;
    std::uint64_t first_block = 0;
};

struct BlockTime {
    std::uint64_t begin_ms = 0;
    std::uint64_t end_ms = 0;
};

/// Immutable once built, so threads may share it.
class TimeBlocks {
  public:
    static constexpr std::uint64_t most_ms = UINT32_MAX;

    /// `covered` holds all times of records. What lies within a millisecond of each other is one range.
    /// Throws petlm::UsageError for more than most_ms.
    TimeBlocks(const daemon::Intervals& covered, double tick_ps, std::uint32_t block_ms);

    [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
    [[nodiscard]] std::uint64_t start_ticks() const { return ranges_.empty() ? 0 : ranges_.front().start; }
    [[nodiscard]] std::uint64_t end_ms() const { return ranges_.empty() ? 0 : ranges_.back().end_ms; }
    [[nodiscard]] std::uint64_t count() const;
    /// Begin and end of a time block.
    [[nodiscard]] BlockTime time_of(std::uint64_t block) const;
    /// Whole milliseconds from the start; 0 before it.
    [[nodiscard]] std::uint64_t ms_of(std::uint64_t ticks) const {
        const std::uint64_t start = start_ticks();
        return ticks <= start ? 0
                              : static_cast<std::uint64_t>(static_cast<double>(ticks - start) * ms_per_tick_);
    }
    /// The range with a time; nullptr if there is none.
    [[nodiscard]] const Range* range_with(std::uint64_t ticks) const;
    /// The number of the time block of a time in the range.
    [[nodiscard]] std::uint64_t block_of(const Range& range, std::uint64_t ticks) const;

    /// Whole milliseconds; a nanosecond before the next one is rounding.
    [[nodiscard]] std::int64_t floor_ms(double ticks) const;
    [[nodiscard]] std::int64_t ceil_ms(double ticks) const;
    [[nodiscard]] double ms_per_tick() const { return ms_per_tick_; }

  private:
    [[nodiscard]] std::uint64_t blocks_in(const Range& range) const {
        return (range.end_ms - range.begin_ms + block_ms_ - 1) / block_ms_;
    }

    double ms_per_tick_;
    std::uint32_t block_ms_;
    std::vector<Range> ranges_;
};

}  // namespace petacq::petsird
