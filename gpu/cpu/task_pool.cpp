#include "gpu/cpu/task_pool.hpp"

#include <cassert>
#include <exception>
#include <utility>

#include "net/base/thread.hpp"

namespace petacq::gpu {

TaskPool::TaskPool(std::uint32_t threads, std::function<void(const std::string&)> on_failure)
    : on_failure_(std::move(on_failure)) {
    try {
        for (std::uint32_t i = 0; i < threads; ++i)
            threads_.push_back(net::start_thread("worker", [this, i] { loop(i); }));
    } catch (...) {
        stop();
        throw;
    }
}

void TaskPool::post(Job& job, std::size_t tasks, Priority priority) {
    assert(tasks > 0);
    {
        const net::MutexLock lock(mutex_);
        job.tasks_ = tasks;
        job.started_ = 0;
        job.finished_ = 0;
        (priority == Priority::urgent ? urgent_ : normal_).push_back(&job);
    }
    if (tasks == 1) {
        wake_.notify_one();
    } else {
        wake_.notify_all();
    }
}

bool TaskPool::help(std::uint32_t thread) {
    const net::MutexLock lock(mutex_);
    while (run_one(thread, true)) {
    }
    return !stop_;
}

void TaskPool::stop() {
    {
        const net::MutexLock lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::jthread& t : threads_)
        t.join();
    threads_.clear();
}

void TaskPool::loop(std::uint32_t thread) {
    net::MutexLock lock(mutex_);
    while (!stop_) {
        if (!run_one(thread, false)) wake_.wait(lock.native());
    }
}

/// Runs a task with the lock released. Returns false if there is none.
bool TaskPool::run_one(std::uint32_t thread, bool only_urgent) {
    if (stop_) return false;
    std::deque<Job*>& queue = urgent_.empty() && !only_urgent ? normal_ : urgent_;
    if (queue.empty()) return false;
    Job& job = *queue.front();
    const std::size_t task = job.started_++;
    if (job.started_ == job.tasks_) queue.pop_front();
    mutex_.unlock();
    try {
        job.task_(thread, task);
        mutex_.lock();
        // A task may have returned early because the pool stops.
        if (++job.finished_ < job.tasks_ || stop_) return true;
        mutex_.unlock();
        job.done_();
        mutex_.lock();
    } catch (const std::exception& e) {
        mutex_.lock();
        fail(e.what());
    }
    return true;
}

void TaskPool::fail(const std::string& reason) {
    if (!std::exchange(stop_, true)) on_failure_(reason);
    wake_.notify_all();
}

}  // namespace petacq::gpu
