// Loops on a pool of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "net/base/worker_pool.hpp"

namespace petacq::image {

/// Calls work(i) for every i below `count` on the threads of the pool, each once, in no order.
template <class Work>
void for_each_on(net::WorkerPool& pool, std::size_t count, Work&& work) {
    std::atomic<std::size_t> next{0};
    pool.run(pool.size(), [&](std::uint32_t) {
        for (std::size_t i = next++; i < count; i = next++)
            work(i);
    });
}

/// Calls work(begin, end) for pieces of 0..count, each of `size` but the last.
template <class Work>
void for_each_piece(net::WorkerPool& pool, std::size_t count, std::size_t size, Work&& work) {
    for_each_on(pool, (count + size - 1) / size,
                [&](std::size_t i) { work(i * size, std::min(count, (i + 1) * size)); });
}

}  // namespace petacq::image
