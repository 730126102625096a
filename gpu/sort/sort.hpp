// Sorting of 64-bit keys with 64-bit values on the GPU: one interface, several engines.
//
// Sorted is by the low `bits` bits of the keys; the other bits come along. A stable engine (is_stable) keeps
// the order of equal keys. One that is not orders them by the remaining bits of the key, then by the value,
// so that its result does not depend on the order of the input either. Same input, same output, always.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu/sort/engine.hpp"

namespace petacq::gpu::sort {

inline constexpr std::uint32_t most_items = 1U << 31;

/// Keys and values, in device memory.
struct Pairs {
    std::uint64_t* key = nullptr;
    std::uint64_t* value = nullptr;
};

/// The engine that `automatic` stands for with this many items; any other stands for itself.
SortEngine chosen(SortEngine engine, std::uint32_t count);

/// Device memory that sorting up to `max_count` items needs, whatever the bits. May be called without a GPU,
/// but for `cub` and `automatic`. Throws std::invalid_argument for more than most_items.
std::size_t scratch_bytes(SortEngine engine, std::uint32_t max_count);

/// Sorts `count` items from `in` to `out`; all work is on the stream: no allocation, and the host waits for
/// nothing. `in` stays as it is; `in`, `out` and `scratch` (256-byte aligned) do not overlap. Throws
/// std::invalid_argument for bits outside [1, 64], too many items or too little scratch memory, and
/// std::runtime_error for a CUDA error.
void launch(SortEngine engine, void* scratch, std::size_t scratch_bytes, Pairs in, Pairs out,
            std::uint32_t count, int bits, cudaStream_t stream);

}  // namespace petacq::gpu::sort
