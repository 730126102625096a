// Commands that other threads give to the acquisition thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// Any thread posts; one thread runs the commands, in the order in which they were posted.
class CommandQueue {
  public:
    void post(std::function<void()> command) {
        const net::MutexLock lock(mutex_);
        commands_.push_back(std::move(command));
        waiting_.store(true, std::memory_order_release);
    }
    /// Runs what is waiting, without the lock: a command may post another one. Costs an atomic load when
    /// nothing is waiting.
    void run_all() {
        if (!waiting_.load(std::memory_order_acquire)) return;
        while (const std::function<void()> command = take())
            command();
    }

  private:
    /// The next command; empty when there is none.
    std::function<void()> take() {
        const net::MutexLock lock(mutex_);
        waiting_.store(!commands_.empty(), std::memory_order_relaxed);
        if (commands_.empty()) return {};
        std::function<void()> command = std::move(commands_.front());
        commands_.pop_front();
        return command;
    }

    net::Mutex mutex_;
    std::deque<std::function<void()>> commands_ PETACQ_GUARDED_BY(mutex_);
    std::atomic<bool> waiting_{false};
};

}  // namespace petacq::daemon
