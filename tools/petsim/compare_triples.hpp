// Compares the triples of a run with the truth: those that its pairs and the sent gammas must give, and what
// made them.
#pragma once

#include <cstdint>
#include <vector>

#include "config/configuration.hpp"
#include "gpu/base/records.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

struct TripleComparison {
    std::uint64_t gammas = 0;    ///< frames sent whole and inside the gamma window
    std::uint64_t triples = 0;   ///< in the list-mode: the sum of the next five
    std::uint64_t trues = 0;     ///< both photons of one annihilation, and the gamma of its decay
    std::uint64_t spurious = 0;  ///< of one decay, but not these three photons
    std::uint64_t randoms = 0;   ///< not of one decay
    std::uint64_t delayeds = 0;  ///< pair or gamma were looked for a delay later
    std::uint64_t foreign = 0;   ///< not expected: must be 0
    std::uint64_t expected = 0;  ///< of the pairs in the list-mode and the gammas, by the rules of the run
    std::uint64_t missing = 0;   ///< expected and not in the list-mode: must be 0

    [[nodiscard]] bool agrees() const { return foreign == 0 && missing == 0; }
};

/// `singles` and `gammas`, those of the truth that can be in the list-mode, are in order; `pairs` (prompts
/// and delayeds of the list-mode) and `triples` may be in any order.
TripleComparison compare_triples(const config::Gammas& rules, const std::vector<TruthRecord>& singles,
                                 const std::vector<TruthRecord>& gammas,
                                 const std::vector<gpu::Coincidence>& pairs,
                                 std::vector<gpu::Triple> triples);

}  // namespace petacq::sim
