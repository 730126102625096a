// The items that the quicksort samples to choose its pivots. Declared here so that tests can construct inputs
// that mislead it.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define PETACQ_SORT_HD __host__ __device__
#else
#define PETACQ_SORT_HD
#endif

namespace petacq::gpu::sort {

inline constexpr std::uint32_t quicksort_block = 4096;   ///< one block sorts segments up to this size
inline constexpr std::uint32_t quicksort_wanted = 1024;  ///< the desired number of items between two pivots
inline constexpr std::uint32_t max_pivots = 256;         ///< one more than the number of pivots
inline constexpr std::uint32_t samples_per_pivot = 8;

/// The number of parts into which a segment of `size` > quicksort_block items is cut: a power of two.
PETACQ_SORT_HD constexpr std::uint32_t parts_of_segment(std::uint32_t size) {
    std::uint32_t parts = 2;
    while (parts < max_pivots && parts * quicksort_wanted < size)
        parts *= 2;
    return parts;
}

/// The item that is sample `i` of `samples`: one from each of `samples` equal stretches of the segment.
PETACQ_SORT_HD constexpr std::uint32_t sample_place(std::uint32_t i, std::uint32_t samples,
                                                    std::uint32_t size) {
    const auto from = static_cast<std::uint32_t>(std::uint64_t{i} * size / samples);
    const auto until = static_cast<std::uint32_t>((std::uint64_t{i} + 1) * size / samples);
    std::uint32_t hash = i * 0x9E3779B9U + size;
    hash = (hash ^ hash >> 16) * 0x7FEB352DU;
    hash = (hash ^ hash >> 15) * 0x846CA68BU;
    hash ^= hash >> 16;
    return from + static_cast<std::uint32_t>(std::uint64_t{hash} * (until - from) >> 32);
}

/// The number of partition rounds for `count` items: the number that even cuts would need, plus one.
PETACQ_SORT_HD constexpr int quicksort_rounds(std::uint32_t count) {
    if (count <= quicksort_block) return 0;
    int rounds = 1;
    for (std::uint64_t reach = quicksort_wanted; reach < count; reach *= max_pivots)
        ++rounds;
    return rounds;
}
static_assert(quicksort_rounds(quicksort_block + 1) == 2 && quicksort_rounds(1U << 31) == 4);

}  // namespace petacq::gpu::sort
