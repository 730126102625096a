// Quicksort with many pivots. Each round cuts every segment that is too long for one block by up to 255
// pivots, which are sorted samples of the segment, into the items between two pivots and the items equal to
// one. The latter are done. Segments and their tiles are lists on the device, and blocks take work from them
// until none is left. The cuts are stable, and so is the sort.
//
// The cost is bounded by quicksort_rounds(count) rounds, at most 4, each of which reads keys twice and values
// once. If a segment is still too long after them, by bad luck or because the input was made for it, one
// merge sort of all items follows. Equal keys never cause that, because frequent keys become pivots.
#include <cooperative_groups.h>

#include <algorithm>

#include "gpu/sort/engines.hpp"
#include "gpu/sort/quicksort_round.cuh"

namespace petacq::gpu::sort {

namespace {

using namespace quicksort;
using cuda::check;

__global__ void begin_kernel(Scratch s, std::uint32_t count) {
    s.segments[0][0] = {0, count, 0, parts_of_segment(count)};
    s.control->listed[0] = 1ULL << 32 | tiles_of(count);
}

/// Chooses the pivots of each segment, as shifted keys in order, and sets its counts to zero.
__global__ void __launch_bounds__(SampleSort::threads) pivots_kernel(const __grid_constant__ Round r) {
    __shared__ SampleSort::Storage storage;
    for (std::uint32_t n = blockIdx.x; n < r.segments(); n += gridDim.x) {
        const Segment segment = r.list()[n];
        const std::uint32_t samples = segment.parts * samples_per_pivot;
        SampleSort::Items own;
        SampleSort::read(storage, samples, r.in.key, [=](std::uint32_t i) {
            return segment.begin + sample_place(i, samples, segment.size);
        });
        SampleSort::sort(storage, samples, r.order, own);
        // Each thread holds eight samples in order. The last one is a pivot, except for the last of all.
        static_assert(SampleSort::items == samples_per_pivot);
        if (threadIdx.x + 1 < segment.parts) {
            r.s.pivots[n * max_pivots + threadIdx.x] = r.order.low(own.key[samples_per_pivot - 1]);
        }
        for (std::uint32_t i = threadIdx.x; i < bins; i += SampleSort::threads)
            r.s.counts[n * bins + i] = 0;
        __syncthreads();
    }
}

/// The pivots of one segment, in shared memory.
struct Pivots {
    std::uint64_t at[max_pivots];
};

__device__ void load_pivots(const Round& r, std::uint32_t n, Pivots& pivots) {
    const std::uint32_t count = r.list()[n].parts - 1;
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x)
        pivots.at[i] = r.s.pivots[n * max_pivots + i];
    __syncthreads();
}

/// Twice the number of pivots below the key, plus one if the key equals the next pivot.
struct BinOf {
    const Pivots* pivots;
    std::uint32_t parts;
    KeyOrder order;
    __device__ std::uint32_t operator()(std::uint64_t key) const {
        const std::uint64_t low = order.low(key);
        std::uint32_t before = 0;
        for (std::uint32_t step = parts / 2; step > 0; step /= 2) {
            if (pivots->at[before + step - 1] < low) before += step;
        }
        const bool equal = before + 1 < parts && pivots->at[before] == low;
        return 2 * before + (equal ? 1 : 0);
    }
};

constexpr std::uint32_t count_threads = 512;

/// Counts the bins per segment. A block takes adjacent tiles, so that it rarely changes segments.
__global__ void __launch_bounds__(count_threads) count_kernel(const __grid_constant__ Round r) {
    __shared__ Pivots pivots;
    __shared__ std::uint32_t own[bins];
    __shared__ std::uint32_t found;
    const std::uint64_t tiles = r.tiles();
    const auto begin = static_cast<std::uint32_t>(tiles * blockIdx.x / gridDim.x);
    const auto end = static_cast<std::uint32_t>(tiles * (blockIdx.x + 1) / gridDim.x);
    if (begin == end) return;
    if (threadIdx.x < cuda::warp_threads) {
        const std::uint32_t n = r.segment_of(begin);
        if (threadIdx.x == 0) found = n;
    }
    __syncthreads();
    std::uint32_t tile = begin;
    for (std::uint32_t n = found; tile < end; ++n) {
        const Segment segment = r.list()[n];
        const std::uint32_t last = min(end, segment.first_tile + tiles_of(segment.size));
        cuda::block_clear<count_threads>(own, bins);
        load_pivots(r, n, pivots);
        const BinOf bin_of{&pivots, segment.parts, r.order};
        const std::uint32_t from = (tile - segment.first_tile) * Cut::tile;
        const auto until = static_cast<std::uint32_t>(
            min(std::uint64_t{last - segment.first_tile} * Cut::tile, std::uint64_t{segment.size}));
        constexpr std::uint32_t items = 8;
        for (std::uint32_t i = from + threadIdx.x; i < until; i += items * count_threads) {
            std::uint64_t key[items];
#pragma unroll
            for (std::uint32_t k = 0; k < items; ++k) {
                const std::uint32_t at = i + k * count_threads;
                key[k] = at < until ? r.in.key[segment.begin + at] : 0;
            }
#pragma unroll
            for (std::uint32_t k = 0; k < items; ++k) {
                if (i + k * count_threads < until) atomicAdd(&own[bin_of(key[k])], 1U);
            }
        }
        cuda::block_add_counts<count_threads>(own, bins, r.s.counts + n * bins);
        tile = last;
    }
}

__device__ void add_task(const Round& r, Task task) {
    r.s.tasks[atomicAdd(&r.s.control->tasks, 1U)] = task;
}

__device__ void copy_to_output(const Round& r, std::uint32_t begin, std::uint32_t size) {
    if (!r.out_is_second) return;
    for (std::uint32_t done = 0; done < size; done += quicksort_block)
        add_task(r, {begin + done, min(quicksort_block, size - done), 1, 0});
}

/// Computes where each bin of a segment starts and what happens to it: long bins become segments of the next
/// round, the others are sorted by one block, several neighbours together. Uses one thread per bin.
__global__ void __launch_bounds__(bins) place_kernel(const __grid_constant__ Round r) {
    __shared__ cuda::WarpValues<std::uint32_t, bins> scan;
    __shared__ std::uint32_t sizes[bins];
    for (std::uint32_t n = blockIdx.x; n < r.segments(); n += gridDim.x) {
        const Segment segment = r.list()[n];
        const std::uint32_t bin = threadIdx.x;
        const std::uint32_t size = r.s.counts[n * bins + bin];
        std::uint32_t all = 0;
        const std::uint32_t begin = segment.begin + cuda::block_exclusive_sum<bins>(size, scan, all);
        r.s.counts[n * bins + bin] = begin;
        sizes[bin] = size;
        __syncthreads();
        if (size > quicksort_block) {
            const bool equal = bin % 2 == 1;
            if (equal || r.last) {
                copy_to_output(r, begin, size);
                if (!equal) atomicOr(&r.s.control->gave_up, 1U);
            } else {
                const unsigned long long at =
                    atomicAdd(&r.s.control->listed[r.number + 1], 1ULL << 32 | tiles_of(size));
                r.s.segments[(r.number + 1) % 2][at >> 32] = {begin, size, static_cast<std::uint32_t>(at),
                                                              parts_of_segment(size)};
            }
        }
        if (bin == 0) {
            std::uint32_t from = begin;
            std::uint32_t length = 0;
            const auto close = [&] {
                if (length > 0) add_task(r, {from, length, r.out_is_second ? 1U : 0U, 1});
                from += length;
                length = 0;
            };
            for (std::uint32_t b = 0; b < 2 * segment.parts - 1; ++b) {
                if (length + sizes[b] > quicksort_block) close();
                if (sizes[b] > quicksort_block) {
                    from += sizes[b];
                } else {
                    length += sizes[b];
                }
            }
            close();
        }
        __syncthreads();
    }
}

__global__ void __launch_bounds__(Cut::threads) cut_kernel(const __grid_constant__ Round r) {
    __shared__ Cut::Storage storage;
    __shared__ Pivots pivots;
    __shared__ std::uint32_t taken;
    __shared__ std::uint32_t found;
    const std::uint32_t tiles = r.tiles();
    while (true) {
        if (threadIdx.x == 0) taken = atomicAdd(&r.s.control->tickets[r.number], 1U);
        __syncthreads();
        const std::uint32_t tile = taken;
        if (tile >= tiles) return;
        if (threadIdx.x < cuda::warp_threads) {
            const std::uint32_t n = r.segment_of(tile);
            if (threadIdx.x == 0) found = n;
        }
        __syncthreads();
        const std::uint32_t n = found;
        const Segment segment = r.list()[n];
        load_pivots(r, n, pivots);
        const std::uint32_t at = (tile - segment.first_tile) * Cut::tile;
        const bool first = at == 0;
        std::uint32_t base[Cut::bins_per_thread] = {};
        for (std::uint32_t j = 0; j < Cut::bins_per_thread && first; ++j)
            base[j] = r.s.counts[n * bins + Cut::first_bin() + j];
        Cut::run(storage,
                 {segment.begin + at, min(Cut::tile, segment.size - at), std::uint64_t{tile} * bins, first},
                 r.in, r.out, BinOf{&pivots, segment.parts, r.order},
                 {r.s.words, static_cast<std::uint32_t>(r.number)}, base);
    }
}

__global__ void __launch_bounds__(MergeTile::threads)
    tasks_kernel(const __grid_constant__ Scratch s, Pairs out, KeyOrder order) {
    __shared__ MergeTile::Storage storage;
    const std::uint32_t tasks = s.control->tasks;
    for (std::uint32_t n = blockIdx.x; n < tasks; n += gridDim.x) {
        const Task task = s.tasks[n];
        const Pairs in = task.in_second != 0 ? s.second : out;
        if (task.sorted != 0) {
            sort_tile(storage, in, task.begin, out, task.begin, task.size, order);
            __syncthreads();
        } else {
            for (std::uint32_t i = threadIdx.x; i < task.size; i += MergeTile::threads) {
                out.key[task.begin + i] = in.key[task.begin + i];
                out.value[task.begin + i] = in.value[task.begin + i];
            }
        }
    }
}

__global__ void __launch_bounds__(MergeTile::threads)
    sort_short_kernel(Pairs in, Pairs out, std::uint32_t count, KeyOrder order) {
    __shared__ MergeTile::Storage storage;
    sort_tile(storage, in, 0, out, 0, count, order);
}

/// The merge sort for a segment that is left over. All blocks run at the same time.
__global__ void __launch_bounds__(MergeTile::threads)
    merge_all_kernel(const __grid_constant__ Scratch s, Pairs out, std::uint32_t count, KeyOrder order) {
    if (s.control->gave_up == 0) return;
    __shared__ MergeTile::Storage storage;
    __shared__ std::uint32_t splits[2];
    constexpr std::uint32_t size = MergeTile::tile;
    const std::uint32_t tiles = (count + size - 1) / size;
    bool odd = false;
    for (std::uint64_t run = size; run < count; run *= 2)
        odd = !odd;
    Pairs from = out;
    Pairs to = odd ? s.second : out;
    for (std::uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        sort_tile(storage, from, tile * size, to, tile * size, min(size, count - tile * size), order);
        __syncthreads();
    }
    for (std::uint64_t run = size; run < count; run *= 2) {
        cooperative_groups::this_grid().sync();
        from = to;
        to = odd ? out : s.second;
        odd = !odd;
        for (std::uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            merge_tile(storage, splits, from, to, count, run, tile, order);
            __syncthreads();
        }
    }
}

void launch_merge_all(const Scratch& s, const Job& job, std::uint32_t at_once) {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, merge_all_kernel,
                                                        static_cast<int>(MergeTile::threads), 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "planning a sort");
    Scratch scratch = s;
    Pairs out = job.out;
    std::uint32_t count = job.count;
    KeyOrder order{64 - job.bits};
    void* arguments[] = {&scratch, &out, &count, &order};
    check(cudaLaunchCooperativeKernel(merge_all_kernel, dim3(at_once * static_cast<std::uint32_t>(blocks)),
                                      dim3(MergeTile::threads), arguments, 0, job.stream),
          "cudaLaunchCooperativeKernel", "sorting the rest of a quicksort");
}

}  // namespace

std::size_t quicksort_scratch_bytes(std::uint32_t count) {
    return place(nullptr, count).bytes;
}

void launch_quicksort(const Job& job) {
    const KeyOrder order{64 - job.bits};
    const auto launched = [](const char* doing) { check(cudaGetLastError(), "kernel launch", doing); };
    const int rounds = quicksort_rounds(job.count);
    if (rounds == 0) {
        sort_short_kernel<<<1, MergeTile::threads, 0, job.stream>>>(job.in, job.out, job.count, order);
        launched("sorting one block");
        return;
    }
    const Scratch s = place(job.scratch, job.count);
    check(cudaMemsetAsync(job.scratch, 0, s.cleared, job.stream), "cudaMemsetAsync",
          "clearing the lists of a sort");
    begin_kernel<<<1, 1, 0, job.stream>>>(s, job.count);
    launched("starting a quicksort");
    const std::uint32_t at_once = processors();
    const std::uint32_t max_tiles = job.count / Cut::tile + segment_room(job.count);
    const std::uint32_t segments = std::min(segment_room(job.count), 2 * at_once);
    const std::uint32_t blocks = std::min(max_tiles, 4 * at_once);
    Pairs in = job.in;
    for (int number = 0; number < rounds; ++number) {
        const bool to_second = number % 2 == 1;
        const Round r{s, in, to_second ? s.second : job.out, number, to_second, number + 1 == rounds, order};
        pivots_kernel<<<segments, SampleSort::threads, 0, job.stream>>>(r);
        launched("choosing pivots");
        count_kernel<<<blocks, count_threads, 0, job.stream>>>(r);
        launched("counting between pivots");
        place_kernel<<<segments, bins, 0, job.stream>>>(r);
        launched("placing segments");
        cut_kernel<<<blocks, Cut::threads, 0, job.stream>>>(r);
        launched("cutting segments");
        in = r.out;
    }
    tasks_kernel<<<std::min(4 * segment_room(job.count), 4 * at_once), MergeTile::threads, 0, job.stream>>>(
        s, job.out, order);
    launched("sorting segments");
    launch_merge_all(s, job, at_once);
}

}  // namespace petacq::gpu::sort
