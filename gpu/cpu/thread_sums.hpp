// The sums of an interval as one thread adds them up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/interval_sums.hpp"

namespace petacq::gpu {

/// IntervalSums without the counts. What every single adds to is dense. The numbers that only groups add to
/// lie side by side, so that those of a pair are in the cache when its singles have been counted.
struct ThreadSums {
    struct Crystal {
        std::uint32_t grouped = 0;
        std::uint32_t prompts = 0;
        std::uint32_t delayeds = 0;
    };
    std::vector<std::uint32_t> decided;  ///< [crystal] unpaired and grouped
    std::vector<Crystal> crystals;
    /// Pairs of two sectors, in the order of their singles.
    struct ModulePair {
        std::uint64_t dt = 0;  ///< if each module is a sector; else `ends` has it
        std::uint64_t dt_squared = 0;
        std::uint32_t prompts = 0;
        std::uint32_t refused = 0;  ///< pairs, which the other members leave out
    };
    struct Photopeak {
        std::uint64_t ends = 0;
        std::uint64_t energy = 0;
    };
    Sectors sectors;
    std::vector<Photopeak> photopeaks;     ///< [bdm]
    std::vector<ModulePair> module_pairs;  ///< [Sectors::pair]
    std::vector<PromptEnds> ends;          ///< [bdm] times alone; empty if each module is a sector
    std::array<std::uint32_t, energy_samples> energies{};

    explicit ThreadSums(const config::Geometry& geometry)
        : decided(geometry.crystal_count()),
          crystals(geometry.crystal_count()),
          sectors(Sectors::of(geometry)),
          photopeaks(geometry.bdm_count),
          module_pairs(sectors.pairs()),
          ends(sectors.shift == 0 ? 0 : geometry.bdm_count) {}

    void add_prompt(const Coincidence& c, std::uint32_t module_a, std::uint32_t module_b) {
        ++crystals[c.crystal_a].prompts;
        ++crystals[c.crystal_b].prompts;
        ModulePair& pair = module_pairs[sectors.pair(module_a, module_b)];
        if (ends.empty()) [[likely]] {
            pair.dt += c.dt;
            pair.dt_squared += std::uint64_t{c.dt} * c.dt;
        } else {
            ends[module_a] += PromptEnds::of(c.dt, 0);
            ends[module_b] += PromptEnds::of(-std::int64_t{c.dt}, 0);
        }
        ++pair.prompts;
        add_end(photopeaks[module_a], c.energy_a);
        add_end(photopeaks[module_b], c.energy_b);
    }
    /// A window of two singles that geometry refuses.
    void add_refused(std::uint32_t module_a, std::uint32_t module_b) {
        ++module_pairs[sectors.pair(module_a, module_b)].refused;
    }
    void add_energy(const Single& alone) { ++energies[energy_sample(of_alone, alone.energy)]; }
    void add_energies(const Single& a, const Single& b) {
        ++energies[energy_sample(of_lesser, std::min(a.energy, b.energy))];
        ++energies[energy_sample(of_greater, std::max(a.energy, b.energy))];
    }
    /// Adds them to sums of the same scanner, and begins again.
    void move_to(IntervalSums& sums);
    /// Begins again.
    void clear();

  private:
    static void add_end(Photopeak& sum, float energy) {
        const std::uint32_t peak = photopeak_energy(energy);
        sum.ends += peak > 0 ? 1 : 0;
        sum.energy += peak;
    }
};

}  // namespace petacq::gpu
