#include "gpu/sort/sort.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <string>

#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

namespace {

/// What an engine is.
struct Engine {
    SortEngine engine;
    bool stable;
    std::size_t (*scratch_bytes)(std::uint32_t count);
    void (*launch)(const Job& job);
};

/// One row for each engine, in the order of SortEngine, whose first enumerator is `automatic`.
constexpr std::array table{
    Engine{SortEngine::merge, true, merge_scratch_bytes, launch_merge_sort},
    Engine{SortEngine::radix, true, radix_scratch_bytes, launch_radix_sort},
    Engine{SortEngine::bitonic, false, [](std::uint32_t) { return std::size_t{0}; }, launch_bitonic_sort},
    Engine{SortEngine::quicksort, true, quicksort_scratch_bytes, launch_quicksort},
    Engine{SortEngine::odd_even, true, merge_scratch_bytes, launch_odd_even_sort},
    Engine{SortEngine::cub, true, cub_scratch_bytes, launch_cub_sort},
};

consteval bool has_all_engines() {
    if (table.size() + 1 != config::words<SortEngine>.names.size()) return false;
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (static_cast<std::size_t>(table[i].engine) != i + 1) return false;
    }
    return true;
}
static_assert(has_all_engines());

/// Throws std::out_of_range for `automatic`.
constexpr const Engine& engine_of(SortEngine engine) {
    return table.at(static_cast<std::size_t>(engine) - 1);
}

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

static_assert(std::all_of(std::begin(choices), std::end(choices),
                          [](const Choice& choice) { return engine_of(choice.engine).stable; }));

}  // namespace

std::vector<SortEngine> engines() {
    std::vector<SortEngine> all;
    for (const Engine& row : table)
        all.push_back(row.engine);
    return all;
}

bool is_stable(SortEngine engine) {
    return engine == SortEngine::automatic || engine_of(engine).stable;
}

SortEngine chosen(SortEngine engine, std::uint32_t count) {
    if (engine != SortEngine::automatic) return engine;
    return std::find_if(std::begin(choices), std::end(choices) - 1,
                        [&](const Choice& choice) { return count <= choice.most; })
        ->engine;
}

std::size_t scratch_bytes(SortEngine engine, std::uint32_t max_count) {
    if (max_count > max_items) {
        throw std::invalid_argument("sort of " + std::to_string(max_count) + " items: expected at most " +
                                    std::to_string(max_items));
    }
    if (engine != SortEngine::automatic) return engine_of(engine).scratch_bytes(max_count);
    std::size_t bytes = scratch_bytes(chosen(engine, max_count), max_count);
    for (const Choice& choice : choices) {
        if (choice.most < max_count) bytes = std::max(bytes, scratch_bytes(choice.engine, choice.most));
    }
    return bytes;
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
    engine_of(chosen(engine, count)).launch({scratch, bytes, in, out, count, bits, stream});
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
