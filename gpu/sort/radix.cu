// Radix sort, least significant digit first, 8 bits per pass. One kernel counts the digits of all passes;
// each pass then reads and writes every item once.
#include <algorithm>

#include "gpu/sort/engines.hpp"
#include "gpu/sort/partition.cuh"

namespace petacq::gpu::sort {

namespace {

using cuda::check;

constexpr int digit_bits = 8;
constexpr int max_passes = 64 / digit_bits;
constexpr std::uint32_t digits = 1U << digit_bits;
using Pass = Partition<256, 16, digit_bits>;

constexpr std::uint32_t count_threads = 512;
constexpr std::uint32_t count_items = 8;

struct Digit {
    int shift;
    std::uint32_t mask;
    __device__ std::uint32_t operator()(std::uint64_t key) const {
        return static_cast<std::uint32_t>(key >> shift) & mask;
    }
};

__host__ __device__ Digit digit_of_pass(int pass, int bits) {
    const int left = bits - pass * digit_bits;
    return {pass * digit_bits, left < digit_bits ? (1U << left) - 1 : digits - 1};
}

/// The layout of the scratch memory. Everything except the second arrays is zero at the start.
struct Scratch {
    std::uint32_t* counts;   ///< [pass][digit]
    std::uint32_t* tickets;  ///< [pass] tiles that blocks have taken
    std::uint64_t* words;    ///< [tile][digit]
    std::size_t cleared;     ///< bytes
    Pairs second;
    std::size_t bytes;
};

std::uint32_t tiles_of(std::uint32_t count) {
    return (count + Pass::tile - 1) / Pass::tile;
}

Scratch place(void* memory, std::uint32_t count) {
    Parts parts(memory);
    Scratch s{};
    s.counts = parts.take<std::uint32_t>(std::size_t{max_passes} * digits);
    s.tickets = parts.take<std::uint32_t>(max_passes);
    s.words = parts.take<std::uint64_t>(std::size_t{tiles_of(count)} * digits);
    s.cleared = parts.bytes();
    s.second = take_pairs(parts, count);
    s.bytes = parts.bytes();
    return s;
}

__global__ void __launch_bounds__(count_threads)
    count_digits_kernel(const std::uint64_t* key, std::uint32_t count, int bits, std::uint32_t* counts) {
    __shared__ std::uint32_t own[max_passes * digits];
    const int passes = (bits + digit_bits - 1) / digit_bits;
    const std::uint32_t size = static_cast<std::uint32_t>(passes) * digits;
    cuda::block_clear<count_threads>(own, size);
    constexpr std::uint32_t step = count_threads * count_items;
    for (std::uint64_t begin = std::uint64_t{blockIdx.x} * step; begin < count;
         begin += std::uint64_t{gridDim.x} * step) {
        std::uint64_t keys[count_items];
#pragma unroll
        for (std::uint32_t k = 0; k < count_items; ++k) {
            const std::uint64_t i = begin + k * count_threads + threadIdx.x;
            keys[k] = i < count ? key[i] : 0;
        }
        for (int pass = 0; pass < passes; ++pass) {
            const Digit digit = digit_of_pass(pass, bits);
#pragma unroll
            for (std::uint32_t k = 0; k < count_items; ++k) {
                if (begin + k * count_threads + threadIdx.x < count) {
                    atomicAdd(&own[static_cast<std::uint32_t>(pass) * digits + digit(keys[k])], 1U);
                }
            }
        }
    }
    cuda::block_add_counts<count_threads>(own, size, counts);
}

// Three blocks per multiprocessor: fewer registers make it faster.
__global__ void __launch_bounds__(Pass::threads, 3)
    pass_kernel(Pairs in, Pairs out, std::uint32_t count, Digit digit, const std::uint32_t* counts,
                std::uint32_t* ticket, cuda::LookBack look_back) {
    __shared__ Pass::Storage storage;
    __shared__ std::uint32_t taken;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1U);
    __syncthreads();
    const std::uint32_t tile = taken;
    const std::uint32_t begin = tile * Pass::tile;
    std::uint32_t base[1] = {};
    if (tile == 0) {
        std::uint32_t all = 0;
        base[0] = cuda::block_exclusive_sum<Pass::threads>(counts[threadIdx.x], storage.scan, all);
    }
    static_assert(Pass::threads == digits);
    Pass::run(storage, {begin, min(Pass::tile, count - begin), std::uint64_t{tile} * digits, tile == 0}, in,
              out, digit, look_back, base);
}

}  // namespace

std::size_t radix_scratch_bytes(std::uint32_t count) {
    return place(nullptr, count).bytes;
}

void launch_radix_sort(const Job& job) {
    const Scratch s = place(job.scratch, job.count);
    check(cudaMemsetAsync(job.scratch, 0, s.cleared, job.stream), "cudaMemsetAsync",
          "clearing the counts of a sort");
    constexpr std::uint32_t step = count_threads * count_items;
    const std::uint32_t blocks = std::min((job.count + step - 1) / step, processors() * 4);
    count_digits_kernel<<<blocks, count_threads, 0, job.stream>>>(job.in.key, job.count, job.bits, s.counts);
    check(cudaGetLastError(), "kernel launch", "counting digits");
    const int passes = (job.bits + digit_bits - 1) / digit_bits;
    Pairs from = job.in;
    for (int pass = 0; pass < passes; ++pass) {
        const Pairs to = (passes - pass) % 2 == 1 ? job.out : s.second;
        pass_kernel<<<tiles_of(job.count), Pass::threads, 0, job.stream>>>(
            from, to, job.count, digit_of_pass(pass, job.bits), s.counts + pass * digits, s.tickets + pass,
            {s.words, static_cast<std::uint32_t>(pass)});
        check(cudaGetLastError(), "kernel launch", "passing over a digit");
        from = to;
    }
}

}  // namespace petacq::gpu::sort
