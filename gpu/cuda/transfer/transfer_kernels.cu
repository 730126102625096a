#include <algorithm>

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/transfer/transfer_kernels.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = 256;

std::uint32_t blocks_for(std::size_t items, std::size_t most) {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>((items + threads - 1) / threads, 1, most));
}

__global__ void fetch_kernel(uint4* to, const uint4* from, std::size_t count) {
    const std::size_t stride = std::size_t{gridDim.x} * threads;
    for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride)
        to[i] = from[i];
}

__global__ void pack_records_kernel(const SearchTotals* totals, const Coincidence* records,
                                    std::uint32_t room, RecordPacking packing, std::byte* out) {
    const std::uint64_t count = totals->prompts + totals->delayeds;
    if (count > room) return;
    const std::uint32_t stride = gridDim.x * threads;
    for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < count; i += stride) {
        if (packing.fits) {
            reinterpret_cast<PackedRecord*>(out)[i] = packing.pack(records[i]);
        } else {
            reinterpret_cast<Coincidence*>(out)[i] = records[i];
        }
    }
}

}  // namespace

void launch_fetch(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return;
    const std::size_t count = bytes / sizeof(uint4);
    fetch_kernel<<<blocks_for(count, 64), threads, 0, stream>>>(reinterpret_cast<uint4*>(to),
                                                                reinterpret_cast<const uint4*>(from), count);
    check(cudaGetLastError(), "kernel launch", "fetching the table of spans");
}

void launch_pack_records(const SearchTotals* totals, const Coincidence* records, std::uint32_t room,
                         const RecordPacking& packing, std::byte* out, cudaStream_t stream) {
    pack_records_kernel<<<blocks_for(room, 1024), threads, 0, stream>>>(totals, records, room, packing, out);
    check(cudaGetLastError(), "kernel launch", "packing records");
}

}  // namespace petacq::gpu::cuda
