#include "net/base/worker_pool.hpp"

#include <algorithm>
#include <utility>

#include "net/base/thread.hpp"

namespace petacq::net {

WorkerPool::WorkerPool(std::uint32_t threads) {
    for (std::uint32_t i = 1; i < threads; ++i)
        threads_.push_back(start_thread("worker", [this, i] { loop(i); }));
}

WorkerPool::~WorkerPool() {
    {
        const net::MutexLock lock(mutex_);
        stop_ = true;
    }
    start_.notify_all();
    for (std::jthread& t : threads_)
        t.join();
}

void WorkerPool::run(std::uint32_t workers, const std::function<void(std::uint32_t)>& work) {
    fork(workers, work, Join::all);
}

void WorkerPool::share(std::uint32_t workers, const std::function<void(std::uint32_t)>& work) {
    fork(workers, work, Join::those_that_began);
}

void WorkerPool::fork(std::uint32_t workers, const std::function<void(std::uint32_t)>& work, Join join) {
    workers = std::min(workers, size());
    if (workers <= 1) {
        work(0);
        return;
    }
    {
        const net::MutexLock lock(mutex_);
        work_ = &work;
        taking_part_ = workers;
        awaited_ = workers - 1;
        begun_ = 0;
        ++round_;
    }
    start_.notify_all();
    std::exception_ptr own;
    try {
        work(0);
    } catch (...) {
        own = std::current_exception();
    }
    net::MutexLock lock(mutex_);
    if (join == Join::those_that_began) {
        taking_part_ = 0;
        awaited_ -= workers - 1 - begun_;
    }
    while (awaited_ != 0)
        done_.wait(lock.native());
    std::exception_ptr failure = std::exchange(failure_, nullptr);
    lock.unlock();
    if (own) std::rethrow_exception(own);
    if (failure) std::rethrow_exception(failure);
}

void WorkerPool::loop(std::uint32_t index) {
    std::uint64_t seen = 0;
    net::MutexLock lock(mutex_);
    while (true) {
        while (!stop_ && (round_ == seen || index >= taking_part_))
            start_.wait(lock.native());
        if (stop_) return;
        seen = round_;
        ++begun_;
        const auto* work = work_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            (*work)(index);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (failure && !failure_) failure_ = failure;
        if (--awaited_ == 0) done_.notify_one();
    }
}

}  // namespace petacq::net
