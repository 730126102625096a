#include "tools/petlm/reconstruction/frames/distribution.hpp"

#include <algorithm>
#include <utility>

namespace petacq::frames {

Distribution::Distribution(const std::vector<daemon::Intervals>& times, Take take, Complete complete)
    : take_(std::move(take)), complete_(std::move(complete)) {
    for (std::size_t frame = 0; frame < times.size(); ++frame) {
        for (const gpu::TickRange& range : times[frame].ranges())
            pieces_.push_back({range, frame});
        spans_.push_back(times[frame].span());
    }
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.times.start < b.times.start; });
}

void Distribution::add(std::span<const gpu::Coincidence> records) {
    const auto before = [](std::uint64_t time) {
        return [time](const gpu::Coincidence& c) { return c.time < time; };
    };
    auto at = records.begin();
    for (; at_ < pieces_.size(); ++at_) {
        const Piece& piece = pieces_[at_];
        at = std::partition_point(at, records.end(), before(piece.times.start));
        const auto end = std::partition_point(at, records.end(), before(piece.times.end));
        if (end != at) take_(piece.frame, std::span<const gpu::Coincidence>(at, end));
        at = end;
        if (at == records.end()) break;
        complete_before(at->time);
    }
}

void Distribution::complete_before(std::uint64_t time) {
    while (next_ < spans_.size() && spans_[next_].end <= time)
        complete_(next_++);
}

void Distribution::finish() {
    complete_before(UINT64_MAX);
}

std::size_t Distribution::most_open() const {
    std::size_t most = 1;
    // A frame is kept until those before it are complete.
    std::uint64_t complete = 0;
    std::vector<gpu::TickRange> kept;
    for (const gpu::TickRange& span : spans_) {
        complete = std::max(complete, span.end);
        if (span.ticks() > 0) kept.push_back({span.start, complete});
    }
    for (const gpu::TickRange& now : kept) {
        const auto open = std::count_if(kept.begin(), kept.end(), [&](const gpu::TickRange& other) {
            return other.start <= now.start && now.start < other.end;
        });
        most = std::max(most, static_cast<std::size_t>(open));
    }
    return most;
}

}  // namespace petacq::frames
