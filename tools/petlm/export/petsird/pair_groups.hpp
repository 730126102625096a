// Pairs of modules that have their detection efficiencies in common.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petlm/export/petsird/efficiencies.hpp"

namespace petacq::petsird {

/// The pairs of the modules of two types.
struct PairGroups {
    std::size_t columns = 0;                ///< modules of the second type
    std::vector<std::int32_t> group;        ///< [module][module] of the second type; -1: not in coincidence
    std::vector<std::size_t> first_pair{};  ///< [group] index of a pair in `group`
};

/// One group for all pairs in coincidence.
PairGroups good_pairs(const EfficiencySource& source, const ModuleType& a, const ModuleType& b);
/// A group for all whose crystals have the same weights and factors.
PairGroups alike_pairs(const EfficiencySource& source, const ModuleType& a, const ModuleType& b);

}  // namespace petacq::petsird
