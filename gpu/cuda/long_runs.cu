#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/long_runs.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = 256;

__global__ void first_of_time_kernel(const std::uint64_t* time, std::uint32_t count, std::uint32_t* first) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i < count) first[i] = i > 0 && time[i] != time[i - 1] ? 1 : 0;
}

__global__ void key_kernel(const std::uint32_t* numbers, ValuePacking packing, std::uint32_t count,
                           std::uint64_t* values) {
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= count) return;
    const std::uint64_t value = values[i];
    const std::uint64_t energy = static_cast<std::uint32_t>(value) - packing.lowest_energy;
    const std::uint64_t number = numbers[i];
    const int bits = packing.energy_bits + packing.crystal_bits;
    values[i] = (bits < 64 ? number << bits : 0) | (value >> 32) << packing.energy_bits | energy;
}

__global__ void pack_keys_kernel(const std::uint64_t* time, const std::uint64_t* keys, ValuePacking packing,
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

ValuePacking ValuePacking::of(const PipelineOptions& options) {
    ValuePacking packing;
    const std::uint32_t most = options.geometry.crystal_count() - 1;
    packing.crystal_bits = std::max(1, static_cast<int>(std::bit_width(most)));
    if (!options.energy.filter) return packing;
    // The bits of floats that are not negative order as the floats do.
    const float lower = std::max(options.energy.lower, 0.0F) + 0.0F;  // never -0
    const float upper = std::max(options.energy.upper, lower);
    packing.lowest_energy = std::bit_cast<std::uint32_t>(lower);
    const std::uint32_t span = std::bit_cast<std::uint32_t>(upper) - packing.lowest_energy;
    packing.energy_bits = std::max(1, static_cast<int>(std::bit_width(span)));
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

void launch_number_times(void* scratch, std::size_t scratch_bytes, const std::uint64_t* time,
                         std::uint32_t count, std::uint32_t* numbers, cudaStream_t stream) {
    if (count == 0) return;
    first_of_time_kernel<<<blocks_for(count), threads, 0, stream>>>(time, count, numbers);
    check(cudaGetLastError(), "kernel launch", "counting times");
    check(cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, numbers, numbers, count, stream),
          "InclusiveSum", "numbering times");
}

void launch_order_runs(void* scratch, std::size_t scratch_bytes, SingleArrays sorted, std::uint32_t count,
                       int number_bits, const ValuePacking& packing, std::uint64_t base, Single* out,
                       cudaStream_t stream) {
    if (count == 0) return;
    std::uint64_t* const values = sorted.value;
    const auto* const numbers = reinterpret_cast<const std::uint32_t*>(out);
    auto* const space = reinterpret_cast<std::uint64_t*>(out);
    key_kernel<<<blocks_for(count), threads, 0, stream>>>(numbers, packing, count, values);
    check(cudaGetLastError(), "kernel launch", "making keys");
    cub::DoubleBuffer<std::uint64_t> keys(values, space);
    check(cub::DeviceRadixSort::SortKeys(scratch, scratch_bytes, keys, count, 0, packing.bits() + number_bits,
                                         stream),
          "SortKeys", "ordering equal times");
    // They must not lie where the singles go.
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
