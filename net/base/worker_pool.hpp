// A fixed set of threads that run one function in parallel.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "net/base/mutex.hpp"

namespace petacq::net {

/// Fork and join. One caller at a time.
class WorkerPool {
  public:
    explicit WorkerPool(std::uint32_t threads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

    /// Calls work(0) to work(n - 1) once each, in n = min(workers, size()) threads, work(0) in the calling
    /// one. Returns when all of them have returned. Rethrows the first exception that one of them throws.
    void run(std::uint32_t workers, const std::function<void(std::uint32_t)>& work);
    /// For work that draws its pieces from a common counter: like run(), but does not wait for threads that
    /// have not woken up when work(0) returns. Those never call `work`.
    void share(std::uint32_t workers, const std::function<void(std::uint32_t)>& work);

  private:
    enum class Join : std::uint8_t { all, those_that_began };
    void fork(std::uint32_t workers, const std::function<void(std::uint32_t)>& work, Join join);
    void loop(std::uint32_t index);

    net::Mutex mutex_;
    std::condition_variable start_;
    std::condition_variable done_;
    const std::function<void(std::uint32_t)>* work_ PETACQ_GUARDED_BY(mutex_) = nullptr;
    std::uint64_t round_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint32_t taking_part_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint32_t awaited_ PETACQ_GUARDED_BY(mutex_) = 0;  ///< threads that have not returned
    std::uint32_t begun_ PETACQ_GUARDED_BY(mutex_) = 0;
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    std::exception_ptr failure_ PETACQ_GUARDED_BY(mutex_);
    std::vector<std::jthread> threads_;
};

}  // namespace petacq::net
