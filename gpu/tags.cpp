#include "gpu/tags.hpp"
#include "gpu/rules/record_order.hpp"

#include <algorithm>

namespace petacq::gpu {

namespace {

bool later(const Tag& a, const Tag& b) {
    return before(b, a);
}

}  // namespace

void AcceptedTags::take(net::FrameWords frame, std::uint16_t source, const TimeGuard& guard,
                        std::uint64_t late_below, net::FrameVersion version) {
    const net::TagFrame tag = net::decode_tag(frame, version);
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

void AcceptedTags::clear() {
    counts = {};
    tags.clear();
}

void WaitingTags::add(std::span<const Tag> tags) {
    if (waiting_.empty()) newest_ = 0;
    for (const Tag& tag : tags) {
        newest_ = std::max(newest_, tag.time);
        waiting_.push_back(tag);
        std::push_heap(waiting_.begin(), waiting_.end(), later);
    }
}

void WaitingTags::release(std::uint64_t watermark, std::optional<std::uint64_t> close_at,
                          RecordVector<Tag>& out) {
    const std::uint64_t limit = close_at.value_or(watermark);
    const bool everything = close_at == UINT64_MAX;
    out.clear();
    while (!waiting_.empty() && (everything || waiting_.front().time < limit)) {
        std::pop_heap(waiting_.begin(), waiting_.end(), later);
        out.push_back(waiting_.back());
        waiting_.pop_back();
    }
}

void WaitingTags::describe(SliceResult& result) const {
    result.pending_tags = waiting_.size();
    if (!waiting_.empty()) result.latest_pending_time = std::max(result.latest_pending_time, newest_);
}

}  // namespace petacq::gpu
