// Memory for large tables that are read at random, in huge pages if the system provides them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace petacq::net {

/// Anything smaller than a huge page gets ordinary memory.
template <class T>
struct HugePageAllocator {
    using value_type = T;
    static constexpr std::size_t page = 2U << 20;

    HugePageAllocator() = default;
    template <class U>
    explicit HugePageAllocator(const HugePageAllocator<U>& /*other*/) {}

    T* allocate(std::size_t n) {
        if (n * sizeof(T) < page) return std::allocator<T>().allocate(n);
        const std::size_t bytes = (n * sizeof(T) + page - 1) / page * page;
        void* const memory = ::operator new (bytes, std::align_val_t{page});
        madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: ordinary pages work, too
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t n) {
        if (n * sizeof(T) < page) return std::allocator<T>().deallocate(memory, n);
        ::operator delete (memory, std::align_val_t{page});
    }
    bool operator==(const HugePageAllocator& /*other*/) const { return true; }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace petacq::net
