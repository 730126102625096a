// What the kernels of the search read and write; gpu/cuda/coincidence/search.cpp says how they work together.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/layout.hpp"
#include "gpu/cuda/base/sums.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu::cuda {

/// A window that yields records.
struct Emitter {
    std::uint32_t first;   ///< single that opens the window
    std::uint32_t second;  ///< the next single of the group; for delayeds, the first of the delayed window
    std::uint32_t size;    ///< singles in the group, the opener included; for delayeds, and in that window
    std::uint32_t pairs;
};

/// Words with a bit for each single of a tile.
inline constexpr std::uint32_t mark_words = single_tile / 32;

struct EmitterLists {
    Emitter* emitters = nullptr;              ///< [tile][single_tile]
    std::uint32_t* emitter_counts = nullptr;  ///< [tile]
    std::uint64_t* records =
        nullptr;  ///< [tile] number of records; after the scan, the number before the tile
};

struct SearchRules {
    PairRule pair;
    MultiplesPolicy policy;
    bool greedy;       ///< each single belongs to one window; false without a search
    bool opener_only;  ///< all prompts of a window contain its opener
    bool delayeds;
    bool shifted;  ///< delayeds of shifted groups
    std::uint32_t window;
    std::uint32_t max_multiplicity;
    std::uint64_t delay;
};

struct SearchArguments {
    const Single* singles = nullptr;  ///< ordered
    std::uint32_t count = 0;
    std::uint32_t taken = 0;                 ///< the first of them already belong to a group
    std::uint64_t horizon = 0;               ///< singles below it may open windows
    std::uint64_t segment_end = UINT64_MAX;  ///< singles at or above it are ignored
    bool everything = false;                 ///< all singles belong to the segment
    bool ends_segment = false;               ///< all singles of the segment may open windows
    SearchRules rules{};
    SearchTotals* totals = nullptr;
    std::uint32_t* exits = nullptr;        ///< [single]
    std::uint32_t* super_exits = nullptr;  ///< [single]
    std::uint32_t* tile_exit = nullptr;    ///< [tile] the exit that all entries share, or none
    std::uint32_t* tile_reach = nullptr;   ///< [tile] the last place at which the scan may enter
    std::uint32_t* super_exit = nullptr;   ///< [super tile]
    std::uint32_t* entries = nullptr;      ///< [tile]
    std::uint32_t* marks = nullptr;        ///< [tile][mark_words] a bit for each single that opens a group
    EmitterLists prompts;
    EmitterLists delayeds;
    SumArrays sums;                            ///< of the interval
    const std::uint16_t* module_of = nullptr;  ///< [crystal]
    bool add_pairs = true;                     ///< launch_emit() adds what it writes to the sums
};

/// The rule of good pairs, in the form that a kernel is made for: RingRule or LongFormRule.
template <class Rule>
PETACQ_HD const Rule& pair_rule(const SearchRules& rules) {
    return rules.pair;
}

/// The number of tiles that `singles` singles may need.
constexpr std::uint32_t tiles_for(std::uint32_t singles) {
    return (singles + single_tile - 1) / single_tile;
}

}  // namespace petacq::gpu::cuda
