// The threads of the CPU back-end and the tasks that wait for them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/mutex.hpp"

namespace petacq::gpu {

/// Runs jobs. A job is a number of tasks, which any threads run at once, and what is done after the last of
/// them. Urgent jobs go before the others; otherwise tasks start in the order in which they were posted.
///
/// The order holds across all threads that post, so that the oldest slice is finished first and its memory is
/// free again; a queue that is ordered per thread does not give that.
///
/// A task that throws stops the pool: no further task starts.
class TaskPool {
  public:
    enum class Priority : std::uint8_t { normal, urgent };

    class Job {
      public:
        /// `task(thread, i)` is called for each i below the number of tasks, with the number of the thread
        /// that runs it; `done()` after all of them have returned, by the thread of the last one.
        Job(std::function<void(std::uint32_t, std::size_t)> task, std::function<void()> done)
            : task_(std::move(task)), done_(std::move(done)) {}

      private:
        friend class TaskPool;
        std::function<void(std::uint32_t, std::size_t)> task_;
        std::function<void()> done_;
        std::size_t tasks_ = 0;
        std::size_t started_ = 0;
        std::size_t finished_ = 0;
    };

    /// `on_failure` is called once, when a task throws, with the reason.
    TaskPool(std::uint32_t threads, std::function<void(const std::string&)> on_failure);
    ~TaskPool() { stop(); }
    TaskPool(const TaskPool&) = delete;
    TaskPool& operator=(const TaskPool&) = delete;

    /// Any thread may call it, also a task. `tasks` is at least 1. The job must stay until it is done or the
    /// pool has stopped; it may be posted again by its own `done`.
    void post(Job& job, std::size_t tasks, Priority priority);
    /// For a long task: runs the urgent tasks that wait. Returns false if the pool has stopped, and the task
    /// should return.
    bool help(std::uint32_t thread);
    /// Waits for the tasks that run; the others are dropped. Not to be called by a task.
    void stop();

  private:
    void loop(std::uint32_t thread);
    bool run_one(std::uint32_t thread, bool only_urgent) PETACQ_REQUIRES(mutex_);
    void fail(const std::string& reason) PETACQ_REQUIRES(mutex_);

    const std::function<void(const std::string&)> on_failure_;
    net::Mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job*> urgent_ PETACQ_GUARDED_BY(mutex_);  // with tasks that have not started
    std::deque<Job*> normal_ PETACQ_GUARDED_BY(mutex_);
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    std::vector<std::jthread> threads_;
};

}  // namespace petacq::gpu
