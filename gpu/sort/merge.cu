// Merge sort: tiles are sorted in shared memory, then runs are merged in pairs. Each block of a merge finds
// the source of its outputs by a search along the merge path.
#include "gpu/sort/block_merge.cuh"
#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

namespace {

using cuda::check;

constexpr std::uint32_t tile = MergeTile::tile;

__global__ void __launch_bounds__(MergeTile::threads)
    sort_tiles_kernel(Pairs in, Pairs out, std::uint32_t count, KeyOrder order) {
    __shared__ MergeTile::Storage storage;
    const std::uint32_t begin = blockIdx.x * tile;
    sort_tile(storage, in, begin, out, begin, min(tile, count - begin), order);
}

__global__ void __launch_bounds__(MergeTile::threads)
    merge_kernel(Pairs in, Pairs out, std::uint32_t count, std::uint32_t run, KeyOrder order) {
    __shared__ MergeTile::Storage storage;
    __shared__ std::uint32_t splits[2];
    merge_tile(storage, splits, in, out, count, run, blockIdx.x, order);
}

Pairs second_arrays(const Job& job) {
    Parts parts(job.scratch);
    return take_pairs(parts, job.count);
}

std::uint32_t tiles_of(std::uint32_t count) {
    return (count + tile - 1) / tile;
}

}  // namespace

std::size_t merge_scratch_bytes(std::uint32_t count) {
    Parts parts(nullptr);
    take_pairs(parts, count);
    return parts.bytes();
}

Pairs place_for_runs(const Job& job, std::uint32_t run) {
    bool odd = false;
    for (std::uint64_t r = run; r < job.count; r *= 2)
        odd = !odd;
    return odd ? second_arrays(job) : job.out;
}

void launch_merges(const Job& job, std::uint32_t run) {
    Pairs from = place_for_runs(job, run);
    const Pairs second = second_arrays(job);
    for (std::uint64_t r = run; r < job.count; r *= 2) {
        const Pairs to = from.key == job.out.key ? second : job.out;
        merge_kernel<<<tiles_of(job.count), MergeTile::threads, 0, job.stream>>>(
            from, to, job.count, static_cast<std::uint32_t>(r), {64 - job.bits});
        check(cudaGetLastError(), "kernel launch", "merging runs");
        from = to;
    }
}

void launch_merge_sort(const Job& job) {
    sort_tiles_kernel<<<tiles_of(job.count), MergeTile::threads, 0, job.stream>>>(
        job.in, place_for_runs(job, tile), job.count, {64 - job.bits});
    check(cudaGetLastError(), "kernel launch", "sorting tiles");
    launch_merges(job, tile);
}

}  // namespace petacq::gpu::sort
