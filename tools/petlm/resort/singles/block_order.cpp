#include "tools/petlm/resort/singles/block_order.hpp"

#include <algorithm>

namespace petacq::petlm {

std::vector<OrderedBlock> blocks_in_order(std::span<const SinglesFiles> runs, gpu::TickRange range) {
    std::vector<OrderedBlock> order;
    for (const SinglesFiles& run : runs)
        for (const SinglesFiles::SinglesBlock& block : run.blocks_in(range))
            order.push_back({&run, &block});
    std::stable_sort(order.begin(), order.end(), [](const OrderedBlock& a, const OrderedBlock& b) {
        return a.block->first_time < b.block->first_time;
    });
    return order;
}

}  // namespace petacq::petlm
