// Shared by the kernels of one round of the quicksort: lists of segments and tasks in scratch memory, and
// where the items lie.
#pragma once

#include "gpu/sort/block_merge.cuh"
#include "gpu/sort/engines.hpp"
#include "gpu/sort/partition.cuh"
#include "gpu/sort/sampling.hpp"

namespace petacq::gpu::sort::quicksort {

constexpr int max_rounds = 4;
using Cut = Partition<256, 16, 9>;
constexpr std::uint32_t bins = Cut::bins;  // 2 * pivots + 1 of them are used
using SampleSort = BlockMerge<256, 8>;
static_assert(SampleSort::tile == max_pivots * samples_per_pivot);
static_assert(MergeTile::tile == quicksort_block && bins == 2 * max_pivots);

struct Segment {
    std::uint32_t begin;
    std::uint32_t size;
    std::uint32_t first_tile;
    std::uint32_t parts;
};

/// Items that one block sorts, or only copies, to the output.
struct Task {
    std::uint32_t begin;
    std::uint32_t size : 30;
    std::uint32_t in_second : 1;  ///< lies in the second arrays
    std::uint32_t sorted : 1;
};

/// Zero at the start.
struct Control {
    unsigned long long
        listed[max_rounds + 1];  ///< for each round: number of segments << 32 | number of their tiles
    std::uint32_t tickets[max_rounds];
    std::uint32_t tasks;
    std::uint32_t gave_up;  ///< nonzero: a segment is left over
};

struct Scratch {
    Control* control;
    std::uint64_t* words;  ///< [tile][bin]; zero at the start
    std::size_t cleared;
    Segment* segments[2];   ///< of the current round and the next
    std::uint64_t* pivots;  ///< [segment][max_pivots]
    std::uint32_t* counts;  ///< [segment][bin]; replaced by the start of each bin
    Task* tasks;
    Pairs second;
    std::size_t bytes;
};

/// The most segments in a list: each is longer than a block.
inline std::uint32_t segment_room(std::uint32_t count) {
    return count / quicksort_block + 1;
}

inline Scratch place(void* memory, std::uint32_t count) {
    const std::size_t room = segment_room(count);
    Parts parts(memory);
    Scratch s{};
    s.control = parts.take<Control>(1);
    // A segment has at most one partial tile.
    s.words = parts.take<std::uint64_t>((count / Cut::tile + 1 + room) * bins);
    s.cleared = parts.bytes();
    s.segments[0] = parts.take<Segment>(room);
    s.segments[1] = parts.take<Segment>(room);
    s.pivots = parts.take<std::uint64_t>(room * max_pivots);
    s.counts = parts.take<std::uint32_t>(room * bins);
    // Two adjacent tasks are together longer than a block, or a long segment lies between them.
    s.tasks = parts.take<Task>(room * 4 * (max_rounds + 1));
    s.second = take_pairs(parts, count);
    s.bytes = parts.bytes();
    return s;
}

/// One round and the location of its items.
struct Round {
    Scratch s;
    Pairs in;
    Pairs out;
    int number;
    bool out_is_second;
    bool last;
    KeyOrder order;

    __device__ std::uint32_t segments() const {
        return static_cast<std::uint32_t>(s.control->listed[number] >> 32);
    }
    __device__ std::uint32_t tiles() const { return static_cast<std::uint32_t>(s.control->listed[number]); }
    __device__ const Segment* list() const { return s.segments[number % 2]; }
    /// The segment that a tile belongs to. The whole warp calls it.
    __device__ std::uint32_t segment_of(std::uint32_t tile) const {
        const Segment* all = list();
        return cuda::warp_partition_point(1, segments(),
                                          [=](std::uint32_t i) { return all[i].first_tile <= tile; }) -
               1;
    }
};

__device__ inline std::uint32_t tiles_of(std::uint32_t size) {
    return (size + Cut::tile - 1) / Cut::tile;
}

}  // namespace petacq::gpu::sort::quicksort
