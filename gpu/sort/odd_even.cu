// Odd-even transposition sort within blocks, then merging of the blocks. A block of n items needs at most n
// phases of comparing neighbours. It stops as soon as nothing changes, so sorted blocks need two.
#include "gpu/sort/block_merge.cuh"
#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

namespace {

using Block = BlockMerge<256, 8>;
static_assert(2 * Block::tile % MergeTile::tile == 0, "for launch_merges");

/// The items at the edges of a thread's part, visible to its neighbours.
struct Edges {
    std::uint64_t first_key[Block::threads];
    std::uint64_t last_key[Block::threads];
    Block::Place first_place[Block::threads];
    Block::Place last_place[Block::threads];
};

__device__ bool order_neighbours(Block::Items& own, std::uint32_t from, const KeyOrder& order) {
    bool changed = false;
#pragma unroll
    for (std::uint32_t k = 0; k + 1 < Block::items; k += 2) {
        const std::uint32_t i = k + from;
        if (i + 1 < Block::items && order.before(own.key[i + 1], own.key[i])) {
            const std::uint64_t key = own.key[i];
            own.key[i] = own.key[i + 1];
            own.key[i + 1] = key;
            const Block::Place place = own.place[i];
            own.place[i] = own.place[i + 1];
            own.place[i + 1] = place;
            changed = true;
        }
    }
    return changed;
}

/// Compares with the neighbours. Both threads of a pair get the same result.
__device__ bool exchange_edges(const Edges& edges, Block::Items& own, const KeyOrder& order) {
    constexpr std::uint32_t last = Block::items - 1;
    const std::uint32_t t = threadIdx.x;
    bool changed = false;
    const std::uint64_t own_first = own.key[0];
    const std::uint64_t own_last = own.key[last];
    if (t > 0 && order.before(own_first, edges.last_key[t - 1])) {
        own.key[0] = edges.last_key[t - 1];
        own.place[0] = edges.last_place[t - 1];
        changed = true;
    }
    if (t + 1 < Block::threads && order.before(edges.first_key[t + 1], own_last)) {
        own.key[last] = edges.first_key[t + 1];
        own.place[last] = edges.first_place[t + 1];
        changed = true;
    }
    return changed;
}

__global__ void __launch_bounds__(Block::threads)
    transpose_kernel(Pairs in, Pairs out, std::uint32_t count, KeyOrder order) {
    __shared__ Block::Storage storage;
    __shared__ Edges edges[2];  // used alternately, so that one barrier per round suffices
    const std::uint32_t begin = blockIdx.x * Block::tile;
    const std::uint32_t size = min(Block::tile, count - begin);
    const auto at = [=](std::uint32_t i) { return begin + i; };
    Block::Items own;
    Block::read(storage, size, in.key, at);
    Block::take(storage, own);
    bool changed = true;
    for (std::uint32_t round = 0; round < Block::tile / 2 + 1; ++round) {
        changed |= order_neighbours(own, 0, order);
        changed |= order_neighbours(own, 1, order);
        Edges& e = edges[round % 2];
        e.first_key[threadIdx.x] = own.key[0];
        e.first_place[threadIdx.x] = own.place[0];
        e.last_key[threadIdx.x] = own.key[Block::items - 1];
        e.last_place[threadIdx.x] = own.place[Block::items - 1];
        // The last comparison of the edges changed nothing, and nothing has changed since.
        if (__syncthreads_or(changed ? 1 : 0) == 0) break;
        changed = exchange_edges(e, own, order);
    }
    __syncthreads();
    Block::write(storage, own, size, in, out, begin, at);
}

}  // namespace

void launch_odd_even_sort(const Job& job) {
    const std::uint32_t blocks = (job.count + Block::tile - 1) / Block::tile;
    transpose_kernel<<<blocks, Block::threads, 0, job.stream>>>(job.in, place_for_runs(job, Block::tile),
                                                                job.count, {64 - job.bits});
    cuda::check(cudaGetLastError(), "kernel launch", "sorting blocks by transposition");
    launch_merges(job, Block::tile);
}

}  // namespace petacq::gpu::sort
