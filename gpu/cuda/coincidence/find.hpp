// Finds the coincidences among ordered singles on the device, with the same records as
// gpu/cpu/coincidence.cpp.
//
// The greedy scan of window mode "single" is exact and parallel. The singles are cut into tiles. The place
// where the scan leaves a tile rarely depends on where it enters, because a gap wider than the window starts
// a new group regardless of what precedes it. tile_exits finds the exit of each tile or, where there are
// several, one for each possible entry. compose and expand follow the exits from tile to tile. count_prompts
// then knows the entry of each tile and marks the groups of all tiles in parallel. Shifted groups
// need the groups of the undecided singles as well, so these tiles are marked, too.
#pragma once

#include <cuda_runtime_api.h>

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

struct FindRules {
    PairRule pair;
    MultiplesPolicy policy;
    bool greedy;  ///< window mode "single"; false without a search
    bool delayeds;
    bool shifted;  ///< delayeds of shifted groups
    std::uint32_t window;
    std::uint32_t max_multiplicity;
    std::uint64_t delay;
};

struct FindArguments {
    const Single* singles = nullptr;  ///< ordered
    std::uint32_t count = 0;
    std::uint32_t taken = 0;                 ///< the first of them already belong to a group
    std::uint64_t horizon = 0;               ///< singles below it may open windows
    std::uint64_t segment_end = UINT64_MAX;  ///< singles at or above it are ignored
    bool everything = false;                 ///< all singles belong to the segment
    bool ends_segment = false;               ///< all singles of the segment may open windows
    FindRules rules{};
    FindTotals* totals = nullptr;
    std::uint32_t* exits = nullptr;        ///< [single]
    std::uint32_t* super_exits = nullptr;  ///< [single]
    std::uint32_t* tile_exit = nullptr;    ///< [tile] the exit that all entries share, or none
    std::uint32_t* tile_reach = nullptr;   ///< [tile] the last place at which the scan may enter
    std::uint32_t* super_exit = nullptr;   ///< [super tile]
    std::uint32_t* entries = nullptr;      ///< [tile]
    std::uint32_t* marks = nullptr;        ///< [tile][mark_words] a bit for each single that opens a group
    EmitterLists prompts;
    EmitterLists delayeds;
    SumArrays sums;                           ///< of the interval
    const std::uint8_t* module_of = nullptr;  ///< [crystal]
    bool add_pairs = true;                    ///< launch_emit() adds what it writes to the sums
};

/// The number of tiles that `singles` singles may need.
std::uint32_t tiles_for(std::uint32_t singles);

/// Fills in the totals and the lists, and adds the decided singles to the sums. Finds nothing when
/// totals->long_run is set.
void launch_find(const FindArguments& arguments, cudaStream_t stream);
/// Without a search: fills in the totals, and adds the decided singles to the sums.
void launch_take_all(const FindArguments& arguments, cudaStream_t stream);
void launch_bounds(const FindArguments& arguments, cudaStream_t stream);
void launch_groups(const FindArguments& arguments, cudaStream_t stream);
void launch_counts(const FindArguments& arguments, cudaStream_t stream);
void launch_delayed_counts(const FindArguments& arguments, cudaStream_t stream);

/// Writes records [low, low + room) of the list to out[0..room).
void launch_emit(const FindArguments& arguments, Kind kind, std::uint64_t low, std::uint32_t room,
                 Coincidence* out, cudaStream_t stream);
/// Merges prompts and delayeds, both ordered by time, into one list, prompts first at equal times. Does
/// nothing when there are more than `room` records.
void launch_merge(const FindTotals* totals, const Coincidence* prompts, const Coincidence* delayeds,
                  std::uint32_t room, Coincidence* out, cudaStream_t stream);
/// Lists the records that precede their predecessor in record order.
void launch_disorders(FindTotals* totals, const Coincidence* records, std::uint32_t room,
                      cudaStream_t stream);

}  // namespace petacq::gpu::cuda
