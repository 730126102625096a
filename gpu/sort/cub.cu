// The radix sort of CUB.
#include <cub/device/device_radix_sort.cuh>

#include "gpu/sort/engines.hpp"

namespace petacq::gpu::sort {

std::size_t cub_scratch_bytes(std::uint32_t count) {
    std::size_t bytes = 0;
    std::uint64_t* none = nullptr;
    cuda::check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, none, none, none, none, count), "SortPairs",
                "asking for the scratch memory of the sort");
    return bytes;
}

void launch_cub_sort(const Job& job) {
    std::size_t bytes = job.scratch_bytes;
    cuda::check(cub::DeviceRadixSort::SortPairs(job.scratch, bytes, job.in.key, job.out.key, job.in.value,
                                                job.out.value, job.count, 0, job.bits, job.stream),
                "SortPairs", "sorting");
}

}  // namespace petacq::gpu::sort
