// A fixed set of threads that run one function together.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace petacq::gpu {

/// Fork and join: run(f) calls f(0) .. f(n-1), each once, f(0) on the calling thread, and returns when all
/// have returned. One caller at a time.
class WorkerPool {
  public:
    explicit WorkerPool(std::uint32_t threads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

    /// With `workers` below size() only that many take part. The first exception thrown by a worker is
    /// thrown again here.
    void run(std::uint32_t workers, const std::function<void(std::uint32_t)>& work);

  private:
    void loop(std::uint32_t index);

    std::mutex mutex_;
    std::condition_variable start_;
    std::condition_variable done_;
    const std::function<void(std::uint32_t)>* work_ = nullptr;
    std::uint64_t round_ = 0;
    std::uint32_t taking_part_ = 0;
    std::uint32_t running_ = 0;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
};

}  // namespace petacq::gpu
