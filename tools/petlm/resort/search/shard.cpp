#include "tools/petlm/resort/search/shard.hpp"

#include <algorithm>

namespace petacq::petlm {

std::vector<gpu::TickRange> next_shards(std::span<const SinglesFiles> runs, gpu::TickRange range,
                                        const ShardLimits& limits) {
    std::vector<gpu::TickRange> shards;
    std::uint64_t start = range.start;
    std::uint64_t passed = 0;
    std::vector<std::span<const SinglesFiles::SinglesBlock>> left;
    for (const SinglesFiles& run : runs)
        left.push_back(run.blocks_in(range));
    const auto first_time = [](std::span<const SinglesFiles::SinglesBlock> blocks) {
        return blocks.empty() ? UINT64_MAX : blocks.front().first_time;
    };
    while (shards.size() < limits.shards) {
        const auto next = std::min_element(left.begin(), left.end(),
                                           [&](auto a, auto b) { return first_time(a) < first_time(b); });
        if (next == left.end() || next->empty()) break;
        const SinglesFiles::SinglesBlock& block = next->front();
        if (passed >= limits.singles && block.first_time > start) {
            shards.push_back({start, block.first_time});
            start = block.first_time;
            passed = 0;
        }
        passed += block.records;
        *next = next->subspan(1);
    }
    if (shards.size() < limits.shards && range.end > start && range.end - start >= limits.ticks)
        shards.push_back({start, range.end});
    return shards;
}

std::vector<gpu::TickRange> plan_shards(std::span<const SinglesFiles> runs, gpu::TickRange interval,
                                        std::uint64_t singles) {
    std::vector<gpu::TickRange> shards = next_shards(runs, interval, {singles});
    shards.push_back({shards.empty() ? interval.start : shards.back().end, interval.end});
    return shards;
}

std::uint64_t reach_of(const gpu::CoincidenceRules& rules) {
    return std::uint64_t{rules.window} + 2 + rules.reach();
}

}  // namespace petacq::petlm
