// Work that several threads do and whose results are used in the order in which it was added.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace petacq::petlm {

/// Holds at most as many pieces of work as there are cores, so that memory stays bounded. Not thread-safe.
template <class Result>
class InOrder {
  public:
    /// `use` receives the results, in the thread that calls add() and finish().
    explicit InOrder(std::function<void(Result&&)> use) : use_(std::move(use)) {}

    /// `work` returns a Result; it runs in a thread of its own. Throws what earlier work threw.
    template <class Work>
    void add(Work work) {
        if (waiting_.size() >= std::max(1U, std::thread::hardware_concurrency())) use_oldest();
        waiting_.push_back(std::async(std::launch::async, std::move(work)));
    }
    /// Returns when all results have been used. Throws as add() does.
    void finish() {
        while (!waiting_.empty())
            use_oldest();
    }

  private:
    void use_oldest() {
        Result result = waiting_.front().get();
        waiting_.pop_front();
        use_(std::move(result));
    }

    std::function<void(Result&&)> use_;
    std::deque<std::future<Result>> waiting_;
};

}  // namespace petacq::petlm
