#include "tools/petlm/resort/shard.hpp"

#include <algorithm>

#include "tools/petlm/resort/block_order.hpp"

namespace petacq::petlm {

std::vector<gpu::TickRange> plan_shards(std::span<const SinglesFiles> runs, gpu::TickRange interval,
                                        std::uint64_t singles) {
    std::vector<gpu::TickRange> shards;
    gpu::TickRange shard = interval;
    std::uint64_t passed = 0;
    for (const OrderedBlock& next : blocks_in_order(runs, interval)) {
        if (passed >= singles && next.block->first_time > shard.start) {
            shard.end = next.block->first_time;
            shards.push_back(shard);
            shard = {shard.end, interval.end};
            passed = 0;
        }
        passed += next.block->records;
    }
    shards.push_back(shard);
    return shards;
}

}  // namespace petacq::petlm
