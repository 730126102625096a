#include "daemon/detector/board_presence.hpp"

#include <algorithm>
#include <limits>

namespace petacq::daemon {

namespace {

/// Of the mean distance of frames: a source with random times has such a gap once in 5e8 frames.
constexpr double natural_gap = 20;

std::uint64_t overlap(gpu::TickRange a, gpu::TickRange b) {
    const std::uint64_t start = std::max(a.start, b.start);
    const std::uint64_t end = std::min(a.end, b.end);
    return start < end ? end - start : 0;
}

}  // namespace

BoardPresence::BoardPresence(std::uint64_t second, std::uint64_t pause, std::uint32_t bdm_count,
                             std::span<const std::vector<std::uint32_t>> listed)
    : second_(second), pause_(pause), bdm_count_(bdm_count), sources_(listed.size()), listed_(listed.size()) {
    for (std::size_t i = 0; i < listed.size(); ++i) {
        for (const std::uint32_t bdm : listed[i])
            if (bdm < bdm_count) sources_[i].modules.set(bdm);
    }
}

/// A source of which little is known may have any rate.
std::uint64_t BoardPresence::longest_pause(const BoardTimes& source) const {
    const double natural =
        natural_gap * static_cast<double>(source.ticks + pause_) / static_cast<double>(source.frames + 1);
    return std::max(pause_, natural < 0x1p63 ? static_cast<std::uint64_t>(natural) : std::uint64_t{1} << 63);
}

void BoardPresence::open(std::uint64_t second) {
    open_start_ = second * second_;
    if (seconds_.size() >= max_seconds && !seconds_.contains(second)) second = seconds_.rbegin()->first;
    open_ = &seconds_[second];
}

void BoardPresence::add_lost(std::uint32_t source, gpu::TickRange over, double lost) {
    const std::uint64_t first = over.start / second_;
    const std::uint64_t last = std::max(over.end, over.start + 1) / second_;
    if (first == last || last - first > max_seconds) {
        counts(last * second_, source).lost += lost;
        return;
    }
    const auto ticks = static_cast<double>(over.ticks());
    for (std::uint64_t k = first; k <= last; ++k) {
        const std::uint64_t inside = overlap(over, {k * second_, (k + 1) * second_});
        counts(k * second_, source).lost += lost * static_cast<double>(inside) / ticks;
    }
}

/// Where a source began that is heard for the first time since detector time is known: with what was held of
/// it, if that reaches up to now and its datagrams lie no further apart than a pause.
std::uint64_t BoardPresence::first_of(const BoardTimes& source, std::uint64_t begin) const {
    if (source.held == 0 || source.held_begin >= begin || begin > source.held_end + pause_) return begin;
    return (begin - source.held_begin) / (source.held + 1) <= pause_ ? source.held_begin : begin;
}

/// The datagram does not simply follow the one before.
void BoardPresence::add_gap(std::uint32_t index, std::uint64_t begin, std::int64_t lost) {
    BoardTimes& source = sources_[index];
    if (!source.heard) {
        source.heard = true;
        source.end = begin;
        if (gaps_.size() < max_gaps) gaps_.push_back({index, {0, first_of(source, begin)}, true});
        return;
    }
    if (lost > 0) {
        add_lost(index, {std::min(source.end, begin), begin}, static_cast<double>(lost));
        // What is missing says nothing about the distance of frames.
        source.end = std::max(source.end, begin);
        return;
    }
    if (lost < 0) counts(begin, index).lost += static_cast<double>(lost);
    if (begin <= source.end) return;
    const std::uint64_t longest = longest_pause(source);
    if (begin - source.end <= longest) return;
    if (gaps_.size() < max_gaps) gaps_.push_back({index, {source.end, begin}, false});
    // A rate that has fallen is learnt.
    source.end = begin - longest;
}

double BoardPresence::live_of(std::uint32_t index, gpu::TickRange range) const {
    const BoardTimes& source = sources_[index];
    if (!source.heard) return 0;
    std::uint64_t silent = 0;
    for (const Gap& gap : gaps_) {
        if (gap.source != index) continue;
        const std::uint64_t inside = overlap(gap.range, range);
        // Sources begin a little apart.
        if (!gap.first || inside > pause_) silent += inside;
    }
    if (range.end > source.end) {
        const gpu::TickRange open{source.end, range.end};
        if (open.ticks() > longest_pause(source)) silent += overlap(open, range);
    }
    DatagramCounts sum;
    for (auto second = seconds_.lower_bound(range.start / second_);
         second != seconds_.end() && second->first * second_ < range.end; ++second) {
        if (index >= second->second.size()) continue;
        sum.received += second->second[index].received;
        sum.lost += std::max(0.0, second->second[index].lost);
    }
    const double heard =
        1 - static_cast<double>(std::min(silent, range.ticks())) / static_cast<double>(range.ticks());
    return sum.lost > 0 ? heard * sum.received / (sum.received + sum.lost) : heard;
}

void BoardPresence::take(gpu::TickRange range, std::vector<double>& live) {
    live.assign(bdm_count_, std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t i = 0; i < sources_.size(); ++i) {
        if (sources_[i].modules.none()) continue;
        const double share = live_of(i, range);
        for (std::uint32_t bdm = 0; bdm < bdm_count_; ++bdm) {
            // Not a number is less than nothing here.
            if (sources_[i].modules[bdm] && !(live[bdm] >= share)) live[bdm] = share;
        }
    }
    // A second that a segment divides is taken twice.
    seconds_.erase(seconds_.begin(), seconds_.lower_bound(range.end / second_));
    open_ = nullptr;
    std::erase_if(gaps_, [&](const Gap& gap) { return gap.range.end <= range.end; });
}

void BoardPresence::clear() {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        sources_[i].heard = false;
        sources_[i].end = 0;
        sources_[i].held_begin = UINT64_MAX;
        sources_[i].held_end = sources_[i].held = 0;
        sources_[i].ticks = sources_[i].frames = 0;
        if (i >= listed_) sources_[i].modules.clear();
    }
    seconds_.clear();
    open_ = nullptr;
    gaps_.clear();
}

}  // namespace petacq::daemon
