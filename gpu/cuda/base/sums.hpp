// The sums of an interval (IntervalSums, without the counts) in one piece of memory, on the device or pinned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/base/parts.hpp"
#include "gpu/interval_sums.hpp"

namespace petacq::gpu::cuda {

struct SumArrays {
    /// So many copies of the sums by module are added up in the end. Different blocks add to different ones,
    /// since in a scanner of few modules all would wait for the same few words.
    static constexpr std::uint32_t module_copies = 16;

    PromptEnds* modules = nullptr;           ///< [copy][bdm]
    std::uint32_t* module_pairs = nullptr;   ///< [copy][sector][sector]
    std::uint32_t* refused_pairs = nullptr;  ///< likewise
    std::uint32_t* energies = nullptr;       ///< [copy][energy_samples]; the others [crystal]
    std::uint32_t* unpaired = nullptr;
    std::uint32_t* grouped = nullptr;
    std::uint32_t* prompts = nullptr;
    std::uint32_t* delayeds = nullptr;
    Sectors sectors;
    std::uint32_t module_count = 0;
    std::uint32_t sector_count = 0;
    std::byte* memory = nullptr;  ///< of all
    std::size_t bytes = 0;

    /// `take(bytes)` returns the memory, or nullptr when it is only planned.
    template <class Take>
    static SumArrays make(const config::Geometry& geometry, const Take& take) {
        SumArrays sums;
        sums.sectors = Sectors::of(geometry);
        sums.module_count = geometry.bdm_count;
        sums.sector_count = sums.sectors.count();
        sums.bytes = sums.place(geometry);
        sums.memory = take(sums.bytes);
        sums.place(geometry);
        return sums;
    }

  private:
    std::size_t place(const config::Geometry& geometry) {
        Parts parts(memory);
        modules = parts.take<PromptEnds>(module_copies * module_count);
        for (std::uint32_t** const pairs : {&module_pairs, &refused_pairs})
            *pairs = parts.take<std::uint32_t>(module_copies * sector_count * sector_count);
        energies = parts.take<std::uint32_t>(module_copies * energy_samples);
        for (std::uint32_t** const crystals : {&unpaired, &grouped, &prompts, &delayeds})
            *crystals = parts.take<std::uint32_t>(geometry.crystal_count());
        return parts.bytes();
    }
};

}  // namespace petacq::gpu::cuda
