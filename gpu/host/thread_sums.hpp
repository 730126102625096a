// The sums of an interval as one thread adds them up.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/interval_sums.hpp"

namespace petacq::gpu {

/// IntervalSums without the counts. The numbers of a crystal lie side by side, so that those of a pair are in
/// the cache when its singles have been counted.
struct ThreadSums {
    struct Crystal {
        std::uint32_t unpaired = 0;
        std::uint32_t grouped = 0;
        std::uint32_t prompts = 0;
        std::uint32_t delayeds = 0;
    };
    std::vector<Crystal> crystals;
    std::vector<PromptEnds> modules;
    std::vector<std::uint32_t> module_pairs;

    explicit ThreadSums(const config::Geometry& geometry)
        : crystals(geometry.crystal_count()),
          modules(geometry.bdm_count),
          module_pairs(std::size_t{geometry.bdm_count} * geometry.bdm_count) {}

    /// Adds them to sums of the same scanner, and begins again.
    void move_to(IntervalSums& sums);
    /// Begins again.
    void clear();
};

}  // namespace petacq::gpu
