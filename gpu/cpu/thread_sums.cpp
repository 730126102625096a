#include "gpu/cpu/thread_sums.hpp"

#include <algorithm>

namespace petacq::gpu {

void ThreadSums::move_to(IntervalSums& sums) {
    for (std::size_t i = 0; i < crystals.size(); ++i) {
        sums.unpaired[i] += decided[i] - crystals[i].grouped;
        sums.grouped[i] += crystals[i].grouped;
        sums.prompts[i] += crystals[i].prompts;
        sums.delayeds[i] += crystals[i].delayeds;
    }
    for (std::size_t i = 0; i < energies.size(); ++i)
        sums.energies[i] += energies[i];
    for (std::size_t a = 0; a < photopeaks.size(); ++a) {
        sums.modules[a].peak += photopeaks[a].ends;
        sums.modules[a].peak_energy += photopeaks[a].energy;
    }
    for (std::size_t a = 0; a < ends.size(); ++a)
        sums.modules[a] += ends[a];
    const std::size_t count = sectors.count();
    for (std::size_t a = 0; a < count; ++a) {
        for (std::size_t b = 0; b < count; ++b) {
            const ModulePair& pair = module_pairs[a * count + b];
            sums.refused_pairs[a * count + b] += pair.refused;
            if (pair.prompts == 0) continue;
            sums.module_pairs[a * count + b] += pair.prompts;
            if (!ends.empty()) continue;
            sums.modules[a] += {pair.dt, pair.dt, pair.dt_squared, 0, 0};
            sums.modules[b] += {0 - pair.dt, pair.dt, pair.dt_squared, 0, 0};
        }
    }
    clear();
}

void ThreadSums::clear() {
    std::fill(decided.begin(), decided.end(), 0U);
    std::fill(crystals.begin(), crystals.end(), Crystal{});
    std::fill(photopeaks.begin(), photopeaks.end(), Photopeak{});
    std::fill(module_pairs.begin(), module_pairs.end(), ModulePair{});
    std::fill(ends.begin(), ends.end(), PromptEnds{});
    energies.fill(0);
}

}  // namespace petacq::gpu
