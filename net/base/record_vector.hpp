// Vectors of records that are written before they are read.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace petacq::net {

/// resize(), emplace_back() without arguments and the constructor that takes a size leave elements as the
/// memory is. Several threads can then write them at once, and a large vector costs nothing before.
template <class T>
struct UninitialisedAllocator {
    static_assert(std::is_trivially_copyable_v<T>);
    using value_type = T;

    UninitialisedAllocator() = default;
    template <class U>
    explicit UninitialisedAllocator(const UninitialisedAllocator<U>& /*other*/) {}

    T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
    void deallocate(T* memory, std::size_t n) { std::allocator<T>().deallocate(memory, n); }
    void construct(T* /*place*/) noexcept {}
    template <class... A>
    void construct(T* place, A&&... a) {
        ::new (static_cast<void*>(place)) T(std::forward<A>(a)...);
    }
    bool operator==(const UninitialisedAllocator& /*other*/) const { return true; }
};

template <class T>
using RecordVector = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace petacq::net
