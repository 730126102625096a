#include "gpu/sort/sort.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

namespace {

/// `engine` is the fastest stable engine for up to `most` items.
struct Choice {
    std::uint32_t most;
    SortEngine engine;
};
// Measured on an H200 with 36 bits and input in the order of the sources (docs/explanation/measurements.md).
// For short sorts the number of kernel launches decides.
constexpr Choice choices[] = {{1U << 10, SortEngine::cub},
                              {1U << 15, SortEngine::merge},
                              {1U << 23, SortEngine::radix},
                              {max_items, SortEngine::cub}};

}  // namespace

SortEngine chosen(SortEngine engine, std::uint32_t count) {
    if (engine != SortEngine::automatic) return engine;
    for (const Choice& choice : choices) {
        if (count <= choice.most) return choice.engine;
    }
    return SortEngine::cub;
}

std::size_t scratch_bytes(SortEngine engine, std::uint32_t max_count) {
    if (max_count > max_items) {
        throw std::invalid_argument("sort of " + std::to_string(max_count) + " items: expected at most " +
                                    std::to_string(max_items));
    }
    switch (engine) {
        case SortEngine::automatic: {
            std::size_t bytes = scratch_bytes(chosen(engine, max_count), max_count);
            for (const Choice& choice : choices) {
                if (choice.most < max_count)
                    bytes = std::max(bytes, scratch_bytes(choice.engine, choice.most));
            }
            return bytes;
        }
        case SortEngine::merge:
        case SortEngine::odd_even:
            return merge_scratch_bytes(max_count);
        case SortEngine::radix:
            return radix_scratch_bytes(max_count);
        case SortEngine::bitonic:
            return 0;
        case SortEngine::quicksort:
            return quicksort_scratch_bytes(max_count);
        case SortEngine::cub:
            return cub_scratch_bytes(max_count);
    }
    throw std::invalid_argument("sort engine out of range");
}

void launch(SortEngine engine, void* scratch, std::size_t bytes, Pairs in, Pairs out, std::uint32_t count,
            int bits, cudaStream_t stream) {
    if (bits < 1 || bits > 64) {
        throw std::invalid_argument("sort by " + std::to_string(bits) + " bits: expected 1 to 64");
    }
    const std::size_t needed = scratch_bytes(chosen(engine, count), count);
    if (bytes < needed) {
        throw std::invalid_argument("sort of " + std::to_string(count) + " items with " +
                                    std::to_string(bytes) + " bytes of scratch memory: expected at least " +
                                    std::to_string(needed));
    }
    if (count == 0) return;
    const Job job{scratch, bytes, in, out, count, bits, stream};
    switch (chosen(engine, count)) {
        case SortEngine::merge:
            return launch_merge_sort(job);
        case SortEngine::radix:
            return launch_radix_sort(job);
        case SortEngine::bitonic:
            return launch_bitonic_sort(job);
        case SortEngine::quicksort:
            return launch_quicksort(job);
        case SortEngine::odd_even:
            return launch_odd_even_sort(job);
        default:
            return launch_cub_sort(job);
    }
}

std::uint32_t processors() {
    int device = 0;
    int count = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice", "planning a sort");
    cuda::check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
                "cudaDeviceGetAttribute", "planning a sort");
    return static_cast<std::uint32_t>(count);
}

}  // namespace petacq::gpu::sort
