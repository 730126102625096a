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
    const std::size_t modules = photopeaks.size();
    for (std::size_t a = 0; a < modules; ++a) {
        sums.modules[a].peak += photopeaks[a].ends;
        sums.modules[a].peak_energy += photopeaks[a].energy;
        for (std::size_t b = 0; b < modules; ++b) {
            const ModulePair& pair = module_pairs[a * modules + b];
            sums.refused_pairs[a * modules + b] += pair.refused;
            if (pair.prompts == 0) continue;
            sums.module_pairs[a * modules + b] += pair.prompts;
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
    energies.fill(0);
}

}  // namespace petacq::gpu
