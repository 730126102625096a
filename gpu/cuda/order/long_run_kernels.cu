#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/order/long_run_kernels.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = 256;
constexpr unsigned all_lanes = 0xFFFFFFFF;

__global__ void __launch_bounds__(threads)
    first_of_time_kernel(SingleArrays sorted, std::uint32_t count, std::uint32_t* first, RunTotals* totals) {
    std::uint32_t highest = 0;
    std::uint32_t lowest_inverted = 0;
    const std::uint32_t stride = gridDim.x * threads;
    for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < count; i += stride) {
        const auto energy = static_cast<std::uint32_t>(sorted.value[i]);
        highest = max(highest, energy);
        lowest_inverted = max(lowest_inverted, ~energy);
        first[i] = i > 0 && sorted.time[i] != sorted.time[i - 1] ? 1 : 0;
    }
    highest = __reduce_max_sync(all_lanes, highest);
    lowest_inverted = __reduce_max_sync(all_lanes, lowest_inverted);
    if (threadIdx.x % 32 != 0) return;
    atomicMax(&totals->highest_energy, highest);
    atomicMax(&totals->lowest_inverted, lowest_inverted);
}

__global__ void key_kernel(const std::uint32_t* numbers, KeyPacking packing, std::uint32_t count,
                           std::uint64_t* values) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= count) return;
    const std::uint64_t value = values[i];
    const std::uint64_t energy = static_cast<std::uint32_t>(value) - packing.lowest_energy;
    const std::uint64_t number_and_crystal = std::uint64_t{numbers[i]} << packing.crystal_bits | value >> 32;
    values[i] = number_and_crystal << packing.energy_bits | energy;
}

__global__ void pack_keys_kernel(const std::uint64_t* time, const std::uint64_t* keys, KeyPacking packing,
                                 std::uint64_t base, std::uint32_t count, Single* out) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= count) return;
    const std::uint64_t key = keys[i];
    const std::uint64_t energy =
        (key & ((std::uint64_t{1} << packing.energy_bits) - 1)) + packing.lowest_energy;
    const std::uint64_t crystal =
        key >> packing.energy_bits & ((std::uint64_t{1} << packing.crystal_bits) - 1);
    // One 16-byte store.
    *reinterpret_cast<ulonglong2*>(out + i) = make_ulonglong2(base + time[i], crystal | energy << 32);
}

std::uint32_t blocks_for(std::uint32_t count) {
    return (count + threads - 1) / threads;
}

}  // namespace

KeyPacking KeyPacking::of(const RunTotals& totals, std::uint32_t crystals) {
    KeyPacking packing;
    packing.lowest_energy = ~totals.lowest_inverted;
    packing.energy_bits =
        std::max(1, static_cast<int>(std::bit_width(totals.highest_energy - packing.lowest_energy)));
    packing.crystal_bits = std::max(1, static_cast<int>(std::bit_width(crystals - 1)));
    packing.number_bits = static_cast<int>(std::bit_width(totals.last_number));
    return packing;
}

std::size_t run_scratch_bytes(std::uint32_t count) {
    std::size_t sort = 0;
    std::size_t scan = 0;
    cub::DoubleBuffer<std::uint64_t> keys(nullptr, nullptr);
    std::uint32_t* none = nullptr;
    check(cub::DeviceRadixSort::SortKeys(nullptr, sort, keys, count), "SortKeys",
          "asking for the scratch memory of the sort");
    check(cub::DeviceScan::InclusiveSum(nullptr, scan, none, none, count), "InclusiveSum",
          "asking for the scratch memory of the scan");
    return std::max(sort, scan);
}

void launch_number_times(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                         std::uint32_t* numbers, RunTotals* totals, cudaStream_t stream) {
    // About as many blocks as run at once, because each one ends with atomics on the same totals.
    first_of_time_kernel<<<std::min(blocks_for(count), 2048U), threads, 0, stream>>>(sorted, count, numbers,
                                                                                     totals);
    check(cudaGetLastError(), "kernel launch", "counting times");
    check(cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, numbers, numbers, count, stream),
          "InclusiveSum", "numbering times");
    check(cudaMemcpyAsync(&totals->last_number, numbers + count - 1, sizeof(std::uint32_t),
                          cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync", "numbering times");
}

void launch_order_runs(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                       const KeyPacking& packing, std::uint64_t base, Single* out, cudaStream_t stream) {
    if (count == 0) return;
    std::uint64_t* const values = sorted.value;
    const auto* const numbers = reinterpret_cast<const std::uint32_t*>(out);
    auto* const space = reinterpret_cast<std::uint64_t*>(out);
    key_kernel<<<blocks_for(count), threads, 0, stream>>>(numbers, packing, count, values);
    check(cudaGetLastError(), "kernel launch", "making keys");
    cub::DoubleBuffer<std::uint64_t> keys(values, space);
    check(cub::DeviceRadixSort::SortKeys(scratch, scratch_bytes, keys, count, 0, packing.bits(), stream),
          "SortKeys", "ordering equal times");
    // The keys must not lie where the singles are written.
    if (keys.Current() != values) {
        check(cudaMemcpyAsync(values, keys.Current(), count * sizeof(std::uint64_t), cudaMemcpyDeviceToDevice,
                              stream),
              "cudaMemcpyAsync", "ordering equal times");
    }
    pack_keys_kernel<<<blocks_for(count), threads, 0, stream>>>(sorted.time, values, packing, base, count,
                                                                out);
    check(cudaGetLastError(), "kernel launch", "unpacking keys");
}

}  // namespace petacq::gpu::cuda
