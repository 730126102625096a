// Coincidences among ordered singles on the device: spec of gpu/host/coincidence.cpp, record for record.
//
// The greedy scan of window mode "single" is exact and parallel. Singles are cut into tiles. Where the scan
// leaves a tile depends on where it enters it, but seldom: at a gap wider than the window a group begins
// whatever came before. tile_exits finds for each tile the one exit, or, where there are several, the exit
// for each place at which the scan may enter; compose and expand follow the exits from tile to tile;
// count_prompts then knows where each tile is entered, and marks the groups of all tiles at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/layout.hpp"

namespace petacq::gpu::cuda {

/// A place from which records come.
struct Emitter {
    std::uint32_t first;   ///< single that opens the window
    std::uint32_t second;  ///< the next in the group; of a delayed, the first of the partners
    std::uint32_t size;    ///< singles in the group, the opener included
    std::uint32_t pairs;
};

struct EmitterLists {
    Emitter* emitters = nullptr;              ///< [tile][single_tile]
    std::uint32_t* emitter_counts = nullptr;  ///< [tile]
    std::uint64_t* records = nullptr;         ///< [tile] records; after the scan, the records before the tile
};

struct FindRules {
    PairRule pair;
    MultiplesPolicy policy;
    bool greedy;  ///< window mode "single"
    bool delayeds;
    std::uint32_t window;
    std::uint32_t max_multiplicity;
    std::uint64_t delay;
};

struct FindArguments {
    const Single* singles = nullptr;  ///< ordered
    std::uint32_t count = 0;
    std::uint32_t taken = 0;    ///< the first of them already belong to a group
    std::uint64_t horizon = 0;  ///< singles below it open their windows
    bool everything = false;    ///< all singles do
    bool closing = false;       ///< no single at or above the horizon is looked at
    FindRules rules{};
    FindTotals* totals = nullptr;
    std::uint32_t* exits = nullptr;        ///< [single]
    std::uint32_t* super_exits = nullptr;  ///< [single]
    std::uint32_t* tile_exit = nullptr;    ///< [tile] the exit whatever the entry, or none
    std::uint32_t* tile_reach = nullptr;   ///< [tile] the last place that the scan may enter at
    std::uint32_t* super_exit = nullptr;   ///< [super tile]
    std::uint32_t* entries = nullptr;      ///< [tile]
    EmitterLists prompts;
    EmitterLists delayeds;
};

/// Tiles that `singles` may need.
std::uint32_t tiles_for(std::uint32_t singles);

/// Fills in the totals and the lists. totals->long_run set: finds nothing.
void launch_find(const FindArguments& arguments, cudaStream_t stream);
void launch_bounds(const FindArguments& arguments, cudaStream_t stream);
void launch_groups(const FindArguments& arguments, cudaStream_t stream);
void launch_counts(const FindArguments& arguments, cudaStream_t stream);

/// Records [low, low + room) of the list to out[0..room).
void launch_emit(const FindArguments& arguments, Kind kind, std::uint64_t low, std::uint32_t room,
                 Coincidence* out, cudaStream_t stream);
/// Prompts and delayeds, both ordered by time, into one; prompts first at one time. Nothing when there are
/// more than `room`.
void launch_merge(const FindTotals* totals, const Coincidence* prompts, const Coincidence* delayeds,
                  std::uint32_t room, Coincidence* out, cudaStream_t stream);
/// Lists the records that stand before their predecessor in record order.
void launch_disorders(FindTotals* totals, const Coincidence* records, std::uint32_t room,
                      cudaStream_t stream);

}  // namespace petacq::gpu::cuda
