// Commands that another thread gives to the acquisition thread.
#pragma once

#include <concurrentqueue.h>

#include <functional>
#include <utility>

namespace petacq::daemon {

/// One thread at a time posts: the queue keeps the order of one producer only, and a run must begin before it
/// ends. One thread runs the commands.
class CommandQueue {
  public:
    void post(std::function<void()> command) { commands_.enqueue(in_order_, std::move(command)); }
    /// Runs what is waiting. Costs a few atomic loads when nothing is.
    void run_all() {
        for (std::function<void()> command; commands_.try_dequeue(command); command = nullptr)
            command();
    }

  private:
    moodycamel::ConcurrentQueue<std::function<void()>> commands_;
    moodycamel::ProducerToken in_order_{commands_};
};

}  // namespace petacq::daemon
