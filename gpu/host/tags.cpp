#include "gpu/host/tags.hpp"

#include <algorithm>

namespace petacq::gpu {

namespace {

bool in_order(const Tag& a, const Tag& b) {
    return before(a, b);
}

}  // namespace

void AcceptedTags::take(net::FrameWords frame, std::uint16_t source, const TimeGuard& guard,
                        std::uint64_t late_below) {
    const net::TagFrame tag = net::decode_tag(frame);
    ++counts.received;
    if (guard.refuses(tag.time)) {
        ++counts.time_jump;
    } else if (tag.time < late_below) {
        ++counts.late;
    } else {
        ++counts.accepted;
        tags.push_back({tag.time, tag.value, source, tag.channel, tag.kind});
    }
}

void AcceptedTags::put_in_order() {
    std::sort(tags.begin(), tags.end(), in_order);
}

void AcceptedTags::clear() {
    counts = {};
    tags.clear();
}

void WaitingTags::add(std::span<const Tag> tags) {
    const auto middle = static_cast<std::ptrdiff_t>(waiting_.size());
    waiting_.insert(waiting_.end(), tags.begin(), tags.end());
    std::inplace_merge(waiting_.begin(), waiting_.begin() + middle, waiting_.end(), in_order);
}

void WaitingTags::release(std::uint64_t watermark, std::optional<std::uint64_t> close_at,
                          RecordVector<Tag>& out) {
    const std::uint64_t limit = close_at.value_or(watermark);
    const auto end = close_at == UINT64_MAX
                         ? waiting_.end()
                         : std::partition_point(waiting_.begin(), waiting_.end(),
                                                [=](const Tag& t) { return t.time < limit; });
    out.assign(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
}

void WaitingTags::describe(SliceResult& result) const {
    result.pending_tags = waiting_.size();
    if (!waiting_.empty())
        result.latest_pending_time = std::max(result.latest_pending_time, waiting_.back().time);
}

}  // namespace petacq::gpu
