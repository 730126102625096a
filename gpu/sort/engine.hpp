// Which algorithm orders the singles of a slice on the GPU. All give the same order of singles.
#pragma once

#include <cstdint>
#include <string>

namespace petacq::gpu {

enum class SortEngine : std::uint8_t {
    automatic,  ///< one of the stable ones, by the number of singles
    merge,      ///< blocks, then merging of two runs at a time
    radix,      ///< least significant digit first, 8 bits a pass
    bitonic,    ///< a sorting network; not stable
    quicksort,  ///< partition by up to 255 pivots at a time, then blocks
    odd_even,   ///< odd-even transposition in blocks, then merging
    cub         ///< the radix sort of NVIDIA's library
};

/// Throws std::invalid_argument naming the accepted words.
SortEngine sort_engine_from_name(const std::string& name);
const char* name_of(SortEngine engine);

/// Whether equal keys stay in the order of the input. The others order equal keys by their values.
bool is_stable(SortEngine engine);

}  // namespace petacq::gpu
