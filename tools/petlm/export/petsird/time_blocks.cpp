#include "tools/petlm/export/petsird/time_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"

namespace petacq::petsird {
namespace {

constexpr double rounding_ms = 1e-6;

}  // namespace

TimeBlocks::TimeBlocks(const daemon::Intervals& covered, double tick_ps, std::uint32_t block_ms)
    : ms_per_tick_(tick_ps * 1e-9), block_ms_(block_ms) {
    for (const gpu::TickRange& of : covered.ranges()) {
        const std::uint64_t first = covered.ranges().front().start;
        Range range{of.start, of.end};
        range.begin_ms = static_cast<std::uint64_t>(floor_ms(static_cast<double>(of.start - first)));
        range.end_ms = static_cast<std::uint64_t>(ceil_ms(static_cast<double>(of.end - first)));
        if (!ranges_.empty() && range.begin_ms <= ranges_.back().end_ms) {
            range.start = ranges_.back().start;
            range.begin_ms = ranges_.back().begin_ms;
            ranges_.pop_back();
        }
        if (!ranges_.empty()) range.first_block = ranges_.back().first_block + blocks_in(ranges_.back());
        ranges_.push_back(range);
    }
    if (end_ms() > most_ms) {
        throw petlm::UsageError(fmt::format(
            "the records cover {} ms; expected at most {}, which PETSIRD can count", end_ms(), most_ms));
    }
}

std::uint64_t TimeBlocks::count() const {
    return ranges_.empty() ? 0 : ranges_.back().first_block + blocks_in(ranges_.back());
}

BlockTime TimeBlocks::time_of(std::uint64_t block) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), block,
                                        [](std::uint64_t b, const Range& r) { return b < r.first_block; });
    const Range& range = *(after - 1);
    const std::uint64_t begin = range.begin_ms + (block - range.first_block) * block_ms_;
    return {begin, std::min(begin + block_ms_, range.end_ms)};
}

const Range* TimeBlocks::range_with(std::uint64_t ticks) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), ticks,
                                        [](std::uint64_t t, const Range& r) { return t < r.start; });
    if (after == ranges_.begin() || ticks >= (after - 1)->end) return nullptr;
    return &*(after - 1);
}

std::uint64_t TimeBlocks::block_of(const Range& range, std::uint64_t ticks) const {
    const std::uint64_t ms = std::clamp(ms_of(ticks), range.begin_ms, range.end_ms - 1);
    return range.first_block + (ms - range.begin_ms) / block_ms_;
}

std::int64_t TimeBlocks::floor_ms(double ticks) const {
    return static_cast<std::int64_t>(std::floor(ticks * ms_per_tick_ + rounding_ms));
}

std::int64_t TimeBlocks::ceil_ms(double ticks) const {
    return static_cast<std::int64_t>(std::ceil(ticks * ms_per_tick_ - rounding_ms));
}

}  // namespace petacq::petsird
