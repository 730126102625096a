// How a tile learns the sums of the tiles before it while they are worked on ("decoupled look-back": D.
// Merrill, M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, NVIDIA 2016).
#pragma once

#include <cstdint>

#include "gpu/cuda/base/block_primitives.cuh"

namespace petacq::gpu::cuda {

// Each word describes itself, and no other memory is read because of its value, so relaxed accesses suffice.
__device__ inline void store_relaxed(std::uint64_t* at, std::uint64_t value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline std::uint64_t load_relaxed(const std::uint64_t* at) {
    std::uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

/// The words through which tiles communicate: one for each tile and bin, zero before the first round.
/// Successive rounds reuse the words, because each round has its own states.
struct LookBack {
    std::uint64_t* words;
    std::uint32_t round;

    __device__ std::uint64_t counted() const { return std::uint64_t{2 * round + 1} << 32; }
    __device__ std::uint64_t summed() const { return std::uint64_t{2 * round + 2} << 32; }

    __device__ void publish_count(std::uint64_t word, std::uint32_t count) const {
        store_relaxed(words + word, counted() | count);
    }
    __device__ void publish_sum(std::uint64_t word, std::uint32_t sum) const {
        store_relaxed(words + word, summed() | sum);
    }
    /// The sum up to the previous tile. Words of neighbouring tiles are `stride` apart.
    __device__ std::uint32_t sum_before(std::uint64_t word, std::uint32_t stride) const {
        std::uint32_t sum = 0;
        while (true) {
            word -= stride;
            std::uint64_t seen = load_relaxed(words + word);
            while (seen < counted())
                seen = load_relaxed(words + word);
            sum += static_cast<std::uint32_t>(seen);
            if (seen >= summed()) return sum;
        }
    }
    /// The same for a whole warp, which examines 32 tiles at a time. `tiles` is the number of earlier tiles;
    /// the first of them publishes its sum and no count.
    __device__ std::uint32_t warp_sum_before(std::uint64_t word, std::uint32_t stride,
                                             std::uint32_t tiles) const {
        std::uint32_t sum = 0;
        while (true) {
            const bool there = lane() < tiles;
            std::uint64_t seen = 0;
            if (there) {
                const std::uint64_t* const at = words + word - (std::uint64_t{lane()} + 1) * stride;
                do {
                    seen = load_relaxed(at);
                } while (seen < counted());
            }
            const unsigned with_sum = __ballot_sync(all_lanes, there && seen >= summed());
            // Add up to the nearest sum, which includes all earlier tiles.
            const std::uint32_t last = with_sum == 0 ? warp_threads - 1 : __ffs(with_sum) - 1;
            sum += __reduce_add_sync(all_lanes, lane() <= last ? static_cast<std::uint32_t>(seen) : 0);
            if (with_sum != 0) return sum;
            word -= std::uint64_t{warp_threads} * stride;
            tiles -= warp_threads;
        }
    }
};

}  // namespace petacq::gpu::cuda
