// Suite "sort" on the GPU.
#pragma once

#include <cstdint>

namespace petacq::bench {

struct SortBench {
    std::uint32_t least = 1U << 10;  ///< singles
    std::uint32_t most = 1U << 26;
    int bits = 36;
    int repeat = 11;
};

/// Measures every engine on several inputs and prints a table, with the copy rates of the bus and the device
/// beside it. Throws std::runtime_error when there is no usable GPU.
void run_sort(const SortBench& options);

}  // namespace petacq::bench
