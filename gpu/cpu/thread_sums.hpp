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
    /// Pairs of two modules, in the order of their singles.
    struct ModulePair {
        std::uint64_t dt = 0;
        std::uint64_t dt_squared = 0;
        std::uint32_t prompts = 0;
        std::uint32_t refused = 0;  ///< pairs, which the other members leave out
    };
    struct Photopeak {
        std::uint64_t ends = 0;
        std::uint64_t energy = 0;
    };
    std::vector<Photopeak> photopeaks;     ///< [bdm]
    std::vector<ModulePair> module_pairs;  ///< [a * bdm_count + b]
    std::array<std::uint32_t, energy_samples> energies{};

    explicit ThreadSums(const config::Geometry& geometry)
        : decided(geometry.crystal_count()),
          crystals(geometry.crystal_count()),
          photopeaks(geometry.bdm_count),
          module_pairs(std::size_t{geometry.bdm_count} * geometry.bdm_count) {}

    void add_prompt(const Coincidence& c, std::size_t module_a, std::size_t module_b) {
        ++crystals[c.crystal_a].prompts;
        ++crystals[c.crystal_b].prompts;
        ModulePair& pair = module_pairs[module_a * photopeaks.size() + module_b];
        pair.dt += c.dt;
        pair.dt_squared += std::uint64_t{c.dt} * c.dt;
        ++pair.prompts;
        add_end(photopeaks[module_a], c.energy_a);
        add_end(photopeaks[module_b], c.energy_b);
    }
    /// A window of two singles that geometry refuses.
    void add_refused(std::size_t module_a, std::size_t module_b) {
        ++module_pairs[module_a * photopeaks.size() + module_b].refused;
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
