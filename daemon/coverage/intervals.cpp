#include "daemon/coverage/intervals.hpp"

#include <algorithm>
#include <utility>

namespace petacq::daemon {

Intervals::Intervals(gpu::TickRange range) {
    if (range.start < range.end) ranges_.push_back(range);
}

Intervals::Intervals(std::vector<gpu::TickRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const gpu::TickRange& a, const gpu::TickRange& b) { return a.start < b.start; });
    for (const gpu::TickRange& range : ranges) {
        if (range.start >= range.end) continue;
        if (!ranges_.empty() && range.start <= ranges_.back().end) {
            ranges_.back().end = std::max(ranges_.back().end, range.end);
        } else {
            ranges_.push_back(range);
        }
    }
}

std::uint64_t Intervals::ticks() const {
    std::uint64_t sum = 0;
    for (const gpu::TickRange& range : ranges_)
        sum += range.ticks();
    return sum;
}

std::uint64_t Intervals::ticks_in(gpu::TickRange range) const {
    std::uint64_t sum = 0;
    auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                   [&](const gpu::TickRange& r) { return r.end <= range.start; });
    for (; at != ranges_.end() && at->start < range.end; ++at)
        sum += std::min(at->end, range.end) - std::max(at->start, range.start);
    return sum;
}

gpu::TickRange Intervals::range_at(std::uint64_t time) const {
    const auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                         [&](const gpu::TickRange& r) { return r.end <= time; });
    return at != ranges_.end() && at->start <= time ? *at : gpu::TickRange{};
}

gpu::TickRange Intervals::span() const {
    return empty() ? gpu::TickRange{} : gpu::TickRange{ranges_.front().start, ranges_.back().end};
}

Intervals Intervals::intersect(const Intervals& other) const {
    Intervals both;
    auto a = ranges_.begin();
    auto b = other.ranges_.begin();
    while (a != ranges_.end() && b != other.ranges_.end()) {
        const gpu::TickRange common{std::max(a->start, b->start), std::min(a->end, b->end)};
        if (common.start < common.end) both.ranges_.push_back(common);
        if (a->end < b->end) {
            ++a;
        } else {
            ++b;
        }
    }
    return both;
}

Intervals Intervals::without(const Intervals& other) const {
    std::vector<gpu::TickRange> between;
    std::uint64_t end = 0;
    for (const gpu::TickRange& range : other.ranges_)
        between.push_back({std::exchange(end, range.end), range.start});
    between.push_back({end, UINT64_MAX});
    return intersect(Intervals(std::move(between)));
}

Intervals Intervals::unite(const Intervals& other) const {
    std::vector<gpu::TickRange> all = ranges_;
    all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
    return Intervals(std::move(all));
}

}  // namespace petacq::daemon
