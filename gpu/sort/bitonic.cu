// Bitonic sorting network for any length. Every comparison puts the smaller item at the lower address, so
// places beyond the end need not exist: their items would be larger than all others and never move.
//
// Stage s merges sorted blocks of 2^(s-1) into blocks of 2^s. It first compares each item with its mirror
// image, then items half as far apart, and so on. Up to three such steps are combined on the items that meet.
#include <algorithm>

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

namespace {

using cuda::check;

constexpr int tile_bits = 11;
constexpr std::uint32_t tile = 1U << tile_bits;
constexpr std::uint32_t threads = 256;
constexpr int max_steps = 3;

/// The key, rotated so that the sorted bits are the high ones, and the value, compared as one number.
struct Item {
    std::uint64_t key;
    std::uint64_t value;
};

struct Turn {
    int by;  ///< 64 minus the number of sorted bits; the low bits of the key become the high ones
    __device__ std::uint64_t to(std::uint64_t key) const {
        return by == 0 ? key : key << by | key >> (64 - by);
    }
    __device__ std::uint64_t back(std::uint64_t key) const {
        return by == 0 ? key : key >> by | key << (64 - by);
    }
};

__device__ void order(Item& low, Item& high) {
    const bool swap = high.key < low.key || (high.key == low.key && high.value < low.value);
    const Item was = low;
    low = swap ? high : low;
    high = swap ? was : high;
}

/// Group g of the 2^steps places that meet in `steps` steps of a stage. The first step compares items
/// 2^(top-1) apart, or mirrored in blocks of 2^top.
template <int steps, bool mirror>
struct Group {
    static constexpr std::uint32_t size = 1U << steps;
    std::uint32_t first;  ///< in the lower half, ascending
    std::uint32_t last;   ///< the mirror image of first
    std::uint32_t step;

    __device__ Group(std::uint32_t g, int top) {
        step = 1U << (top - steps);
        const std::uint32_t block = g >> (top - steps);
        const std::uint32_t x = g & (step - 1);
        first = (block << top) + x;
        last = (block << top) + (step << steps) - 1 - x;
    }
    __device__ std::uint32_t place(std::uint32_t i) const {
        if (mirror && i >= size / 2) return last - (size - 1 - i) * step;
        return first + i * step;
    }
};

template <int steps, bool mirror>
__device__ void order_group(Item (&item)[1U << steps]) {
    constexpr std::uint32_t size = 1U << steps;
#pragma unroll
    for (std::uint32_t distance = size / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (std::uint32_t i = 0; i < size; ++i) {
            if ((i & distance) != 0) continue;
            const bool mirrored = mirror && distance == size / 2;
            order(item[i], item[mirrored ? size - 1 - i : i + distance]);
        }
    }
}

template <int steps, bool mirror>
__global__ void __launch_bounds__(threads)
    far_kernel(Pairs in, Pairs out, std::uint32_t count, std::uint32_t groups, int top, Turn turn) {
    const std::uint32_t g = blockIdx.x * threads + threadIdx.x;
    if (g >= groups) return;
    const Group<steps, mirror> group(g, top);
    if (group.first >= count) return;
    constexpr std::uint32_t size = 1U << steps;
    Item item[size];
#pragma unroll
    for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint32_t at = group.place(i);
        item[i] = {~std::uint64_t{0}, ~std::uint64_t{0}};
        if (at < count) item[i] = {turn.to(in.key[at]), in.value[at]};
    }
    order_group<steps, mirror>(item);
#pragma unroll
    for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint32_t at = group.place(i);
        if (at >= count) continue;
        out.key[at] = turn.back(item[i].key);
        out.value[at] = item[i].value;
    }
}

struct Storage {
    std::uint64_t key[tile];
    std::uint64_t value[tile];
};

/// Makes `steps` steps on a whole tile.
template <int steps, bool mirror>
__device__ void near_steps(Storage& s, int top) {
    for (std::uint32_t g = threadIdx.x; g < tile >> steps; g += threads) {
        const Group<steps, mirror> group(g, top);
        Item item[1U << steps];
#pragma unroll
        for (std::uint32_t i = 0; i < 1U << steps; ++i)
            item[i] = {s.key[group.place(i)], s.value[group.place(i)]};
        order_group<steps, mirror>(item);
#pragma unroll
        for (std::uint32_t i = 0; i < 1U << steps; ++i) {
            s.key[group.place(i)] = item[i].key;
            s.value[group.place(i)] = item[i].value;
        }
    }
    __syncthreads();
}

template <bool mirror>
__device__ void near_steps(Storage& s, int top, int steps) {
    if (steps == 3) {
        near_steps<3, mirror>(s, top);
    } else if (steps == 2) {
        near_steps<2, mirror>(s, top);
    } else {
        near_steps<1, mirror>(s, top);
    }
}

/// Makes the rest of a stage once items are less than a tile apart or, with `all`, all stages up to a tile.
__global__ void __launch_bounds__(threads)
    near_kernel(Pairs in, Pairs out, std::uint32_t count, bool all, Turn turn) {
    __shared__ Storage s;
    const std::uint32_t begin = blockIdx.x * tile;
    const std::uint32_t size = min(tile, count - begin);
    for (std::uint32_t i = threadIdx.x; i < tile; i += threads) {
        s.key[i] = i < size ? turn.to(in.key[begin + i]) : ~std::uint64_t{0};
        s.value[i] = i < size ? in.value[begin + i] : ~std::uint64_t{0};
    }
    __syncthreads();
    for (int stage = all ? 1 : tile_bits; stage <= tile_bits; ++stage) {
        int top = stage;
        if (all) {
            const int steps = min(top, max_steps);
            near_steps<true>(s, top, steps);
            top -= steps;
        }
        while (top > 0) {
            const int steps = min(top, max_steps);
            near_steps<false>(s, top, steps);
            top -= steps;
        }
    }
    for (std::uint32_t i = threadIdx.x; i < size; i += threads) {
        out.key[begin + i] = turn.back(s.key[i]);
        out.value[begin + i] = s.value[i];
    }
}

template <int steps, bool mirror>
void launch_far_as(const Job& job, int top, int padded_bits) {
    const std::uint32_t groups = 1U << (padded_bits - steps);
    far_kernel<steps, mirror><<<(groups + threads - 1) / threads, threads, 0, job.stream>>>(
        job.out, job.out, job.count, groups, top, {64 - job.bits});
    check(cudaGetLastError(), "kernel launch", "comparing items of a sorting network");
}

template <bool mirror>
void launch_far(const Job& job, int top, int steps, int padded_bits) {
    if (steps == 3) {
        launch_far_as<3, mirror>(job, top, padded_bits);
    } else if (steps == 2) {
        launch_far_as<2, mirror>(job, top, padded_bits);
    } else {
        launch_far_as<1, mirror>(job, top, padded_bits);
    }
}

void launch_near(const Job& job, Pairs in, bool all) {
    near_kernel<<<(job.count + tile - 1) / tile, threads, 0, job.stream>>>(in, job.out, job.count, all,
                                                                           {64 - job.bits});
    check(cudaGetLastError(), "kernel launch", "sorting tiles of a network");
}

}  // namespace

void launch_bitonic_sort(const Job& job) {
    int padded_bits = tile_bits;
    while ((std::uint64_t{1} << padded_bits) < job.count)
        ++padded_bits;
    launch_near(job, job.in, true);
    for (int stage = tile_bits + 1; stage <= padded_bits; ++stage) {
        int top = stage;
        while (top > tile_bits) {
            const int steps = std::min(top - tile_bits, max_steps);
            if (top == stage) {
                launch_far<true>(job, top, steps, padded_bits);
            } else {
                launch_far<false>(job, top, steps, padded_bits);
            }
            top -= steps;
        }
        launch_near(job, job.out, false);
    }
}

}  // namespace petacq::gpu::sort
