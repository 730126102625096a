#include "gpu/cuda/base/fill.hpp"

#include <sys/mman.h>

namespace petacq::gpu::cuda {

void advise_large_pages(void* memory, std::size_t bytes) {
    constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t last = (begin + bytes) / page * page;
    // Only a hint: without them the result is the same.
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace petacq::gpu::cuda
