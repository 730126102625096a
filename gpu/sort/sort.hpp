// Sorting of 64-bit keys with 64-bit values on the GPU: one interface, several engines.
//
// The engines sort by the low `bits` bits of the keys and keep the other bits. A stable engine (is_stable)
// preserves the order of equal keys. An unstable one orders them by the remaining bits of the key and then by
// the value, so that its result does not depend on the order of the input. The same input always gives the
// same output.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/choices.hpp"

namespace petacq::gpu::sort {

using config::SortEngine;

inline constexpr std::uint32_t max_items = 1U << 31;

/// Keys and values in device memory.
struct Pairs {
    std::uint64_t* key = nullptr;
    std::uint64_t* value = nullptr;
};

/// All engines; `automatic` is none.
std::vector<SortEngine> engines();

/// Whether equal keys stay in the order of the input.
bool is_stable(SortEngine engine);

/// The engine that `automatic` selects for this many items; any other engine is returned unchanged.
SortEngine chosen(SortEngine engine, std::uint32_t count);

/// The device memory in bytes that sorting up to `max_count` items needs, for any number of bits. It works
/// without a GPU, except for `cub` and `automatic`. Throws std::invalid_argument for more than max_items.
std::size_t scratch_bytes(SortEngine engine, std::uint32_t max_count);

/// Sorts `count` items from `in` to `out`. All work runs on the stream: nothing is allocated, and the host
/// does not wait. `in` is unchanged; `in`, `out` and `scratch` (256-byte aligned) do not overlap. Throws
/// std::invalid_argument for bits outside [1, 64], too many items or too little scratch memory, and
/// std::runtime_error for a CUDA error.
void launch(SortEngine engine, void* scratch, std::size_t scratch_bytes, Pairs in, Pairs out,
            std::uint32_t count, int bits, cudaStream_t stream);

}  // namespace petacq::gpu::sort
