// Work that several threads do and whose results are used in the order in which it was given out.
#pragma once

#include <algorithm>
#include <utility>  // Boost 1.74 needs it before in C++20

#include <boost/asio/packaged_task.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <thread>

namespace petacq::petlm {

/// At most twice as many pieces of work as there are cores are under way or wait to be used, so that memory
/// stays bounded. To be used by one thread.
template <class Result>
class InOrder {
  public:
    /// `use` gets the results, in the thread that calls add() and finish().
    explicit InOrder(std::function<void(Result&&)> use)
        : use_(std::move(use)),
          threads_(std::max(1U, std::thread::hardware_concurrency())),
          pool_(threads_) {}
    ~InOrder() {
        pool_.stop();  // what has not begun is left undone
        pool_.join();
    }
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;

    /// `work` gives a Result, in some thread. Throws what work given out before threw.
    template <class Work>
    void add(Work work) {
        if (waiting_.size() >= 2 * std::size_t{threads_}) use_oldest();
        waiting_.push_back(boost::asio::post(pool_, std::packaged_task<Result()>(std::move(work))));
    }
    /// Until everything has been used. Throws as add() does.
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
    unsigned threads_;
    std::deque<std::future<Result>> waiting_;
    boost::asio::thread_pool pool_;
};

}  // namespace petacq::petlm
