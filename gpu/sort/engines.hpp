// The engines behind gpu/sort/sort.hpp: the scratch memory and the launch function of each. The caller has
// checked the arguments; count > 0. The table of them is in gpu/sort/sort.cpp.
#pragma once

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/base/parts.hpp"
#include "gpu/sort/sort.hpp"

namespace petacq::gpu::sort {

using cuda::Parts;

struct Job {
    void* scratch = nullptr;
    std::size_t scratch_bytes = 0;
    Pairs in;
    Pairs out;
    std::uint32_t count = 0;
    int bits = 64;
    cudaStream_t stream = nullptr;
};

std::size_t merge_scratch_bytes(std::uint32_t count);
void launch_merge_sort(const Job& job);
/// Merges sorted runs of `run` items until one is left. Two runs form a multiple of the merge tile.
/// place_for_runs() says where the runs lie; the result is in job.out.
Pairs place_for_runs(const Job& job, std::uint32_t run);
void launch_merges(const Job& job, std::uint32_t run);

std::size_t radix_scratch_bytes(std::uint32_t count);
void launch_radix_sort(const Job& job);

void launch_bitonic_sort(const Job& job);

std::size_t quicksort_scratch_bytes(std::uint32_t count);
void launch_quicksort(const Job& job);

void launch_odd_even_sort(const Job& job);

std::size_t cub_scratch_bytes(std::uint32_t count);
void launch_cub_sort(const Job& job);

/// A second set of arrays for engines that alternate between two.
inline Pairs take_pairs(Parts& parts, std::uint32_t count) {
    return {parts.take<std::uint64_t>(count), parts.take<std::uint64_t>(count)};
}

/// The number of multiprocessors of the current device.
std::uint32_t processors();

}  // namespace petacq::gpu::sort
