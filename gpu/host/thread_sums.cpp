#include "gpu/host/thread_sums.hpp"

#include <algorithm>

namespace petacq::gpu {

void ThreadSums::move_to(IntervalSums& sums) {
    for (std::size_t i = 0; i < crystals.size(); ++i) {
        sums.unpaired[i] += crystals[i].unpaired;
        sums.grouped[i] += crystals[i].grouped;
        sums.prompts[i] += crystals[i].prompts;
        sums.delayeds[i] += crystals[i].delayeds;
    }
    for (std::size_t i = 0; i < modules.size(); ++i)
        sums.modules[i] += modules[i];
    for (std::size_t i = 0; i < module_pairs.size(); ++i)
        sums.module_pairs[i] += module_pairs[i];
    clear();
}

void ThreadSums::clear() {
    std::fill(crystals.begin(), crystals.end(), Crystal{});
    std::fill(modules.begin(), modules.end(), PromptEnds{});
    std::fill(module_pairs.begin(), module_pairs.end(), 0U);
}

}  // namespace petacq::gpu
