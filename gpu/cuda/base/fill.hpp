// Fills large vectors of records with several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net/base/record_vector.hpp"
#include "net/base/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// Asks for large pages where they help: filling and reading a large result is faster with few of them.
void advise_large_pages(void* memory, std::size_t bytes);

/// How many of PipelineOptions::threads fill large results.
inline std::uint32_t fill_threads(std::uint32_t threads) {
    return std::clamp(threads, 1U, 8U);
}

/// Makes `out` hold `count` elements, whatever it held before. `write(begin, end, to)` writes elements
/// [begin, end) to `to`; several threads call it where that pays, because one core reaches a tenth of the bus
/// rate. Memory that `out` brings along is used again.
template <class T, class Write>
void fill(net::WorkerPool& pool, std::size_t count, net::RecordVector<T>& out, Write write) {
    constexpr std::size_t least = (std::size_t{256} << 10) / sizeof(T);  // for a thread
    constexpr std::size_t piece = (std::size_t{128} << 10) / sizeof(T);  // that it takes at a time
    if (out.capacity() < count) {
        net::RecordVector<T>().swap(out);
        // Some extra room, because slices vary in size.
        out.reserve(count + count / 8);
        advise_large_pages(out.data(), out.capacity() * sizeof(T));
    }
    out.resize(count);
    const auto workers = static_cast<std::uint32_t>(std::clamp<std::size_t>(count / least, 1, pool.size()));
    std::atomic<std::size_t> next{0};
    pool.share(workers, [&](std::uint32_t) {
        for (std::size_t begin = 0; (begin = next.fetch_add(piece, std::memory_order_relaxed)) < count;)
            write(begin, std::min(begin + piece, count), out.data() + begin);
    });
}

}  // namespace petacq::gpu::cuda
