// The thread in which a file is written, so that a slow disk fills a queue and delays nobody else.
#pragma once

#include <blockingconcurrentqueue.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "daemon/system/first_failure.hpp"
#include "net/base/counter.hpp"
#include "net/base/thread.hpp"

namespace petacq::daemon {

/// What a disk thread does, all of it in that thread. What `write`, `sync` and `close` throw is a failure of
/// the file: none of the three is called after that.
template <class Item>
struct DiskWork {
    std::function<void(Item&)> write;
    /// An item that cannot be written: after `write` has thrown, or after an earlier failure.
    std::function<void(Item&)> drop = [](Item&) {};
    std::function<void()> sync{};         ///< some time after a write; empty: never
    std::function<void()> close = [] {};  ///< after the last item
    /// Gets the first failure, and returns what DiskThread::failure() is to say.
    std::function<std::string(const std::string& why)> fail;
};

struct DiskThreadCounts {
    std::uint64_t calls = 0;  ///< of write, sync and close that have returned
    bool waiting = false;     ///< one of them is under way, or items wait
    double busy_s = 0;        ///< time spent in them
};

/// One thread at a time calls put(), put_at_once(), check_running() and finish(); any thread the rest. Items
/// are written in the order in which they were put.
template <class Item>
class DiskThread {
  public:
    /// `name` has at most 15 characters. put() waits while `max_waiting` of its items wait. A sync comes
    /// about `sync_interval` after the one before, if anything was written since.
    DiskThread(const char* name, DiskWork<Item> work, std::size_t max_waiting = 0,
               std::chrono::milliseconds sync_interval = {})
        : name_(name),
          work_(std::move(work)),
          sync_interval_(sync_interval),
          room_(static_cast<moodycamel::LightweightSemaphore::ssize_t>(max_waiting)),
          thread_(net::start_thread(name, [this] { run(); })) {}
    ~DiskThread() { finish(); }
    DiskThread(const DiskThread&) = delete;
    DiskThread& operator=(const DiskThread&) = delete;

    /// Throws std::logic_error after finish(), as the next two do.
    void check_running() const {
        if (!thread_.joinable()) throw std::logic_error(std::string(name_) + ": the file is finished");
    }
    void put(Item item) {
        check_running();
        room_.wait();
        enqueue({std::move(item), true});
    }
    /// Never waits: the caller limits what waits.
    void put_at_once(Item item) {
        check_running();
        enqueue({std::move(item), false});
    }
    /// Writes what waits, closes the file and joins the thread. Further calls do nothing.
    void finish() {
        if (!thread_.joinable()) return;
        queue_.enqueue(in_order_, Queued{});
        thread_.join();
    }

    /// Items that wait or are being written.
    [[nodiscard]] std::uint64_t waiting() const {
        const std::uint64_t done = done_.value();
        return put_.value() - done;
    }
    [[nodiscard]] DiskThreadCounts counts() const {
        return {calls_.value(), waiting() != 0 || in_call_.load(std::memory_order_relaxed),
                static_cast<double>(busy_ns_.value()) * 1e-9};
    }
    /// Empty while all is well.
    [[nodiscard]] std::string failure() const { return failure_.why(); }

  private:
    using Clock = std::chrono::steady_clock;
    struct Queued {
        std::optional<Item> item;  ///< absent: the last one
        bool takes_room = false;
    };

    void enqueue(Queued queued) {
        put_.add();
        queue_.enqueue(in_order_, std::move(queued));
    }

    void run() {
        Clock::time_point sync_at = Clock::now() + sync_interval_;
        bool dirty = false;
        for (;;) {
            Queued next;
            if (!dirty) {
                queue_.wait_dequeue(next);
            } else if (!queue_.wait_dequeue_timed(next,
                                                  std::max(sync_at - Clock::now(), Clock::duration()))) {
                sync_at = sync();
                dirty = false;
                continue;
            }
            if (!next.item) break;
            if (next.takes_room) room_.signal();
            if (!call([&] { work_.write(*next.item); })) work_.drop(*next.item);
            done_.add();
            dirty = static_cast<bool>(work_.sync);
            if (dirty && Clock::now() >= sync_at) {
                sync_at = sync();
                dirty = false;
            }
        }
        call(work_.close);
    }

    /// Returns when the next one is due.
    Clock::time_point sync() {
        call(work_.sync);
        return Clock::now() + sync_interval_;
    }

    /// False after a failure.
    template <class Action>
    bool call(const Action& action) {
        if (failed_) return false;
        std::string why;
        const Clock::time_point started = Clock::now();
        in_call_.store(true, std::memory_order_relaxed);
        try {
            action();
        } catch (const std::bad_alloc&) {
            failed_ = true;
            why = std::string("no memory to write ") + name_;
        } catch (const std::exception& error) {
            failed_ = true;
            why = error.what();
        }
        busy_ns_.add(static_cast<std::uint64_t>((Clock::now() - started) / std::chrono::nanoseconds(1)));
        calls_.add();
        if (failed_) failure_.set(work_.fail(why));
        in_call_.store(false, std::memory_order_relaxed);
        return !failed_;
    }

    const char* const name_;
    const DiskWork<Item> work_;
    const std::chrono::milliseconds sync_interval_;
    moodycamel::BlockingConcurrentQueue<Queued> queue_;
    /// The queue keeps the order of one producer only, and finish() may come from another thread than put().
    moodycamel::ProducerToken in_order_{queue_};
    moodycamel::LightweightSemaphore room_;
    net::Counter put_;
    // The thread alone writes these.
    net::Counter done_;
    net::Counter calls_;
    net::Counter busy_ns_;
    std::atomic<bool> in_call_{false};
    bool failed_ = false;
    FirstFailure failure_;
    std::jthread thread_;
};

}  // namespace petacq::daemon
