#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/order/order_kernels.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t longest_run = 32;  // of equal times that are still ranked individually

__device__ void store(Single* out, std::uint64_t time, std::uint64_t value) {
    // One 16-byte store.
    *reinterpret_cast<ulonglong2*>(out) = make_ulonglong2(time, (value >> 32) | (value << 32));
}

__global__ void pack_kernel(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                            std::uint32_t* long_run) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    // Once it is set, the output is not used.
    if (i >= count || *static_cast<volatile std::uint32_t*>(long_run) != 0) return;
    const std::uint64_t key = sorted.time[i];
    const std::uint64_t value = sorted.value[i];
    std::uint32_t first = i;
    while (first > 0 && i - first < longest_run && sorted.time[first - 1] == key)
        --first;
    std::uint32_t last = i;
    while (last + 1 < count && last - first < longest_run && sorted.time[last + 1] == key)
        ++last;
    if (last - first >= longest_run) {
        if (*static_cast<volatile std::uint32_t*>(long_run) == 0) atomicOr(long_run, 1U);
        return;
    }
    std::uint32_t at = first;
    for (std::uint32_t k = first; k <= last && last > first; ++k) {
        const std::uint64_t other = sorted.value[k];
        at += other < value || (other == value && k < i) ? 1 : 0;
    }
    store(out + (last > first ? at : i), base + key, value);
}

__global__ void pack_ordered_kernel(SingleArrays sorted, std::uint32_t count, std::uint64_t base,
                                    Single* out) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i < count) store(out + i, base + sorted.time[i], sorted.value[i]);
}

std::uint32_t blocks_for(std::uint32_t count) {
    return (count + threads - 1) / threads;
}

}  // namespace

void launch_pack(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                 std::uint32_t* long_run, cudaStream_t stream) {
    if (count == 0) return;
    pack_kernel<<<blocks_for(count), threads, 0, stream>>>(sorted, count, base, out, long_run);
    check(cudaGetLastError(), "kernel launch", "ordering equal times");
}

void launch_pack_ordered(SingleArrays sorted, std::uint32_t count, std::uint64_t base, Single* out,
                         cudaStream_t stream) {
    if (count == 0) return;
    pack_ordered_kernel<<<blocks_for(count), threads, 0, stream>>>(sorted, count, base, out);
    check(cudaGetLastError(), "kernel launch", "packing singles");
}

}  // namespace petacq::gpu::cuda
