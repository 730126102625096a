// Adds singles and pairs to the sums of the interval.
#pragma once

#include <cstdint>

#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

/// Adds a decided single, by whether it is alone in its window.
__device__ inline void add_single(const SearchArguments& a, std::uint32_t at, bool alone) {
    atomicAdd(&(alone ? a.sums.unpaired : a.sums.grouped)[a.singles[at].crystal], 1U);
}

__device__ inline void add_to(std::uint64_t& sum, std::uint64_t value) {
    if (value != 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(value));
    }
}

__device__ inline void add_end(PromptEnds& sum, const PromptEnds& end) {
    add_to(sum.dt, end.dt);
    add_to(sum.abs_dt, end.abs_dt);
    add_to(sum.dt_squared, end.dt_squared);
    add_to(sum.peak, end.peak);
    add_to(sum.peak_energy, end.peak_energy);
}

/// Where the pair of two modules counts in a copy of module_pairs or refused_pairs.
__device__ inline std::uint32_t place_of_pair(const SumArrays& sums, std::uint32_t copy,
                                              std::uint32_t module_a, std::uint32_t module_b) {
    const std::uint32_t count = sums.sector_count;
    return (copy * count + sums.sectors.of_module(module_a)) * count + sums.sectors.of_module(module_b);
}

__device__ inline void add_pair(const SearchArguments& a, const Coincidence& c) {
    std::uint32_t* const ends = c.kind == Kind::prompt ? a.sums.prompts : a.sums.delayeds;
    atomicAdd(&ends[c.crystal_a], 1U);
    atomicAdd(&ends[c.crystal_b], 1U);
    if (c.kind != Kind::prompt) return;
    const std::uint32_t copy = blockIdx.x % SumArrays::module_copies;
    const std::uint32_t module_a = a.module_of[c.crystal_a];
    const std::uint32_t module_b = a.module_of[c.crystal_b];
    PromptEnds* const modules = a.sums.modules + copy * a.sums.module_count;
    add_end(modules[module_a], PromptEnds::of(c.dt, c.energy_a));
    add_end(modules[module_b], PromptEnds::of(-static_cast<std::int64_t>(c.dt), c.energy_b));
    atomicAdd(&a.sums.module_pairs[place_of_pair(a.sums, copy, module_a, module_b)], 1U);
}

__device__ inline void add_energy(const SearchArguments& a, EnergyOf whose, float keV) {
    const std::uint32_t copy = blockIdx.x % SumArrays::module_copies;
    atomicAdd(&a.sums.energies[copy * energy_samples + energy_sample(whose, keV)], 1U);
}

/// Adds the energies of a window of one or two singles, if it is a sample.
__device__ inline void sample_energies(const SearchArguments& a, std::uint32_t first, std::uint32_t size) {
    const Single& opener = a.singles[first];
    if (!is_sample(opener.time)) return;
    if (size == 1) {
        add_energy(a, of_alone, opener.energy);
    } else {
        const float other = a.singles[first + 1].energy;
        add_energy(a, of_lesser, other < opener.energy ? other : opener.energy);
        add_energy(a, of_greater, other < opener.energy ? opener.energy : other);
    }
}

/// Adds a window of two singles that geometry refuses.
__device__ inline void add_refused(const SearchArguments& a, std::uint32_t crystal_a,
                                   std::uint32_t crystal_b) {
    const std::uint32_t copy = blockIdx.x % SumArrays::module_copies;
    const std::uint32_t module_a = a.module_of[crystal_a];
    const std::uint32_t module_b = a.module_of[crystal_b];
    atomicAdd(&a.sums.refused_pairs[place_of_pair(a.sums, copy, module_a, module_b)], 1U);
}

}  // namespace petacq::gpu::cuda
