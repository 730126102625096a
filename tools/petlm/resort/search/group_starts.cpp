#include "tools/petlm/resort/search/group_starts.hpp"

#include <algorithm>

#include "tools/petlm/resort/search/group_start.hpp"

namespace petacq::petlm {

std::uint64_t GroupStarts::next(gpu::TickRange shard, const std::function<std::uint64_t()>& own_begin) {
    if (rules_.mode == gpu::WindowMode::every) return shard.end;
    const std::uint64_t window = rules_.window;
    constexpr std::uint64_t at_first = 4096;  // ticks: usually enough for a gap, and a few singles
    for (std::uint64_t back = std::max(at_first, 16 * window);; back *= 8) {
        const bool far = back >= shard.ticks();
        const std::uint64_t from = far ? shard.start : shard.end - back;
        if (const auto found = group_start(times_in({from, shard.end}), from, false, shard.end, window))
            return *found;
        if (far) break;
    }
    const std::uint64_t begin = own_begin();
    if (begin >= shard.end) return begin;
    return *group_start(times_in({begin, shard.end}), begin, true, shard.end, window);
}

/// In order; valid until the next call.
std::span<const std::uint64_t> GroupStarts::times_in(gpu::TickRange range) {
    times_.clear();
    for (const SinglesFiles& run : runs_) {
        for (const SinglesFiles::SinglesBlock& block : run.blocks_in(range)) {
            const auto singles = run.kept(run.read(block, block_), kept_);
            const auto begin = std::partition_point(
                singles.begin(), singles.end(), [&](const gpu::Single& s) { return s.time < range.start; });
            for (const gpu::Single& s : std::span(begin, singles.end())) {
                if (s.time >= range.end) break;
                if (s.energy >= energy_.lower && s.energy <= energy_.upper) times_.push_back(s.time);
            }
        }
    }
    std::sort(times_.begin(), times_.end());
    return times_;
}

}  // namespace petacq::petlm
