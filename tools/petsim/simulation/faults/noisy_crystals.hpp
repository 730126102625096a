// Crystals that become noisy: from a time on they count more, at any energy up to 1022 keV.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/petsim/physics/spectra.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

class NoisyCrystals {
  public:
    explicit NoisyCrystals(std::vector<NoisyCrystal> crystals) : crystals_(std::move(crystals)) {}
    /// Adds their counts to a chunk that starts at `from_s` and lasts for `length` ticks.
    void add(ChunkDraft& draft, double from_s, double length, double tick_s) const {
        for (const NoisyCrystal& noisy : crystals_) {
            if (noisy.hz <= 0) continue;
            const double gap = 1 / (noisy.hz * tick_s);
            double t = std::max(noisy.at_s - from_s, 0.0) / tick_s + draft.random.exponential() * gap;
            for (; t < length; t += draft.random.exponential() * gap) {
                ++draft.chunk.counts.darks;
                const double energy = 2 * annihilation_keV * draft.random.uniform();
                draft.detect(noisy.crystal, t, energy, {0, hit_dark, 0});
            }
        }
    }

  private:
    std::vector<NoisyCrystal> crystals_;
};

}  // namespace petacq::sim
