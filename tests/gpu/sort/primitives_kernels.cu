#include "tests/gpu/sort/primitives_kernels.hpp"

#include "gpu/cuda/base/block_primitives.cuh"
#include "gpu/cuda/base/memory.hpp"

namespace petacq::test {

namespace {

using gpu::cuda::check;
using gpu::cuda::Memory;
namespace cuda = gpu::cuda;

/// To the device, and back.
template <class T>
T* put(Memory& memory, const std::vector<T>& from) {
    T* const to = memory.device<T>(from.size());
    check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy",
          "a test");
    return to;
}
template <class T>
std::vector<T> get(const T* from, std::size_t count) {
    check(cudaGetLastError(), "kernel launch", "a test");
    std::vector<T> to(count);
    check(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy", "a test");
    return to;
}

struct ScanOut {
    std::uint32_t* exclusive;
    std::uint32_t* inclusive;
    std::uint32_t* doubled;
    std::uint32_t* totals;  // total, largest, sum
};

template <std::uint32_t threads>
__global__ void scan_kernel(const std::uint32_t* values, ScanOut out) {
    __shared__ cuda::WarpValues<std::uint32_t, threads> storage;
    const std::uint32_t i = threadIdx.x;
    const std::uint32_t value = values[i];
    std::uint32_t total = 0;
    std::uint32_t unused = 0;
    out.exclusive[i] = cuda::block_exclusive_sum<threads>(value, storage, total);
    out.doubled[i] = cuda::block_exclusive_sum<threads>(2 * value, storage, unused);
    out.inclusive[i] = cuda::block_inclusive_sum<threads>(value, storage, unused);
    const std::uint32_t largest = cuda::block_reduce<threads>(
        value, storage, [](std::uint32_t a, std::uint32_t b) { return max(a, b); });
    const std::uint32_t sum =
        cuda::block_reduce<threads>(value, storage, [](std::uint32_t a, std::uint32_t b) { return a + b; });
    if (i == threads - 1) {
        out.totals[0] = total;
        out.totals[1] = largest;
        out.totals[2] = sum;
    }
}

template <std::uint32_t threads>
__global__ void scan_long_kernel(const std::uint64_t* values, std::uint64_t* out) {
    __shared__ cuda::WarpValues<std::uint64_t, threads> storage;
    std::uint64_t total = 0;
    out[threadIdx.x] = cuda::block_exclusive_sum<threads>(values[threadIdx.x], storage, total);
    if (threadIdx.x == 0) out[threads] = total;
}

template <std::uint32_t threads, std::uint32_t items, std::uint32_t kinds>
__global__ void compact_kernel(const std::uint32_t* values, std::uint32_t* out, std::uint32_t* count) {
    __shared__ cuda::Compaction<threads, items, kinds> storage;
    for (std::uint32_t turn = 0; turn < 2; ++turn) {
        std::uint32_t own[items];
        std::uint32_t kind[items];
        std::uint32_t place[items];
        std::uint32_t kept[kinds];
        for (std::uint32_t k = 0; k < items; ++k) {
            own[k] = values[k * threads + threadIdx.x];
            kind[k] = min((own[k] + turn) % 3, kinds);
        }
        cuda::block_compact(kind, storage, place, kept);
        std::uint32_t before = 0;
        for (std::uint32_t n = 0; n < kinds && turn == 1; ++n) {
            for (std::uint32_t k = 0; k < items; ++k) {
                if (kind[k] == n) out[before + place[k]] = own[k];
            }
            before += kept[n];
        }
        if (threadIdx.x == 0) *count = before;
    }
}

__global__ void histogram_kernel(const std::uint32_t* labels, std::uint32_t bins, std::uint32_t* out) {
    __shared__ std::uint32_t counts[1024];
    for (int twice = 0; twice < 2; ++twice) {
        cuda::block_clear<256>(counts, bins);
        for (std::uint32_t k = 0; k < 4; ++k) {
            const std::uint32_t label = labels[k * 256 + threadIdx.x];
            if (label < bins) atomicAdd(&counts[label], 1U);
        }
        cuda::block_add_counts<256>(counts, bins, out);
    }
}

__global__ void peers_kernel(const std::uint32_t* labels, std::uint32_t* out) {
    out[threadIdx.x] = cuda::warp_peers<5>(labels[threadIdx.x]);
}

__global__ void search_kernel(const std::uint32_t* ordered, std::uint32_t count, const std::uint32_t* limits,
                              std::uint32_t* by_thread, std::uint32_t* by_warp) {
    const std::uint32_t limit = limits[blockIdx.x];
    const auto below = [=](std::uint32_t i) { return ordered[i] < limit; };
    const std::uint32_t found = cuda::warp_partition_point(0, count, below);
    if (threadIdx.x == 7) by_warp[blockIdx.x] = found;
    if (threadIdx.x == 0) by_thread[blockIdx.x] = cuda::partition_point(0, count, below);
}

template <std::uint32_t threads>
Scanned scan_as(const Words& values) {
    Memory memory(Memory::Purpose::use);
    const ScanOut out{memory.device<std::uint32_t>(threads), memory.device<std::uint32_t>(threads),
                      memory.device<std::uint32_t>(threads), memory.device<std::uint32_t>(3)};
    scan_kernel<threads><<<1, threads>>>(put(memory, values), out);
    const Words totals = get(out.totals, 3);
    return {get(out.exclusive, threads),
            get(out.inclusive, threads),
            totals[0],
            get(out.doubled, threads),
            totals[1],
            totals[2]};
}

template <std::uint32_t threads, std::uint32_t items, std::uint32_t kinds>
Words compact_as(const Words& values) {
    Memory memory(Memory::Purpose::use);
    auto* const out = memory.device<std::uint32_t>(threads * items);
    auto* const count = memory.device<std::uint32_t>(1);
    compact_kernel<threads, items, kinds><<<1, threads>>>(put(memory, values), out, count);
    return get(out, get(count, 1)[0]);
}

}  // namespace

Scanned scan_on_device(const Words& values) {
    return values.size() == 32 ? scan_as<32>(values)
                               : (values.size() == 256 ? scan_as<256>(values) : scan_as<1024>(values));
}

std::vector<std::uint64_t> scan_long_on_device(const std::vector<std::uint64_t>& values) {
    Memory memory(Memory::Purpose::use);
    auto* const out = memory.device<std::uint64_t>(513);
    scan_long_kernel<512><<<1, 512>>>(put(memory, values), out);
    return get(out, 513);
}

Words compact_on_device(const Words& values) {
    switch (values.size()) {
        case 32:
            return compact_as<32, 1, 1>(values);
        case 768:
            return compact_as<256, 3, 2>(values);
        case 1024:
            return compact_as<1024, 1, 2>(values);
        default:
            return compact_as<256, 8, 1>(values);
    }
}

Words histogram_on_device(const Words& labels, std::uint32_t bins) {
    Memory memory(Memory::Purpose::use);
    auto* const out = put(memory, Words(bins));
    histogram_kernel<<<1, 256>>>(put(memory, labels), bins, out);
    return get(out, bins);
}

Words peers_on_device(const Words& labels) {
    Memory memory(Memory::Purpose::use);
    auto* const out = memory.device<std::uint32_t>(32);
    peers_kernel<<<1, 32>>>(put(memory, labels), out);
    return get(out, 32);
}

Found search_on_device(const Words& ordered, const Words& limits) {
    Memory memory(Memory::Purpose::use);
    auto* const by_thread = memory.device<std::uint32_t>(limits.size());
    auto* const by_warp = memory.device<std::uint32_t>(limits.size());
    search_kernel<<<static_cast<unsigned>(limits.size()), 32>>>(put(memory, ordered),
                                                                static_cast<std::uint32_t>(ordered.size()),
                                                                put(memory, limits), by_thread, by_warp);
    return {get(by_thread, limits.size()), get(by_warp, limits.size())};
}

}  // namespace petacq::test
