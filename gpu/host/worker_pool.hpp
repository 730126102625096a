// A fixed set of threads that run one function in parallel.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "net/mutex.hpp"

namespace petacq::gpu {

/// Fork and join: run(n, f) calls f(0) .. f(n-1) once each, f(0) in the calling thread, and returns when all
/// of them have returned. One caller at a time.
class WorkerPool {
  public:
    explicit WorkerPool(std::uint32_t threads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

    /// With `workers` below size(), only that many threads take part. Rethrows the first exception that a
    /// worker throws.
    void run(std::uint32_t workers, const std::function<void(std::uint32_t)>& work);

  private:
    void loop(std::uint32_t index);

    net::Mutex mutex_;
    std::condition_variable start_;
    std::condition_variable done_;
    const std::function<void(std::uint32_t)>* work_ PETACQ_GUARDED_BY(mutex_) = nullptr;
    std::uint64_t round_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint32_t taking_part_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint32_t running_ PETACQ_GUARDED_BY(mutex_) = 0;
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    std::exception_ptr failure_ PETACQ_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_;
};

}  // namespace petacq::gpu
