#include "tools/petlm/resort/search/gamma_border.hpp"

#include <algorithm>
#include <utility>

#include "tools/petlm/resort/search/shard.hpp"

namespace petacq::petlm {

void GammaBorders::settle(ShardSums& shard) {
    if (!shard.border) return;
    const GammaBorder& border = *shard.border;
    for (std::size_t i = 0; i < std::min(used_.size(), border.first.size()); ++i) {
        if (used_[i] == 0) continue;
        const GammaBorder::Counted& counted = border.first[i];
        if (counted.used_in != GammaBorder::nowhere) {
            gpu::GammaCounts& counts = shard.sums.at(counted.used_in).second.gammas;
            --counts.used;
            ++counts.reused;
        }
        if (counted.unused_in != GammaBorder::nowhere)
            --shard.sums.at(counted.unused_in).second.gammas.unused;
    }
    std::vector<std::uint8_t> used = border.last;
    for (std::size_t i = 0; i < used.size() && border.last_from + i < used_.size(); ++i)
        used[i] |= used_[border.last_from + i];
    used_ = std::move(used);
}

}  // namespace petacq::petlm
