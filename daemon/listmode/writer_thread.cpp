// The writing threads of ListModeWriter. writer.cpp has the functions that its callers use.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "daemon/listmode/writer.hpp"

namespace petacq::daemon {
namespace {

/// How often a writing thread looks whether its files are still there.
constexpr std::chrono::seconds check_interval{1};

}  // namespace

// Calls `action` on the file while other threads keep working. Returns the error of a call that failed.
template <class Action>
std::optional<std::system_error> ListModeWriter::unlocked(Worker& worker, Action action) {
    std::optional<std::system_error> failure;
    mutex_.unlock();
    try {
        action();
    } catch (const std::system_error& error) {
        failure = error;
    } catch (const std::bad_alloc&) {
        failure = std::system_error(ENOMEM, std::generic_category(), "writing list-mode");
    }
    const std::uint64_t bytes = worker.series.bytes();
    mutex_.lock();
    worker.bytes = bytes;
    return failure;
}

// The same, and counts the call.
template <class Action>
std::optional<std::system_error> ListModeWriter::timed_call(Worker& worker, Action action) {
    worker.in_call = true;
    worker.call_started = Clock::now();
    auto failure = unlocked(worker, action);
    worker.busy_s = busy_s_of(worker);
    worker.in_call = false;
    ++worker.calls;
    return failure;
}

double ListModeWriter::busy_s_of(const Worker& worker) {
    if (!worker.in_call) return worker.busy_s;
    return worker.busy_s + std::chrono::duration<double>(Clock::now() - worker.call_started).count();
}

void ListModeWriter::run(Worker& worker) {
    net::MutexLock lock(mutex_);
    for (;;) {
        if (is_due(worker)) queue_current();
        if (!failure_.empty() && !worker.closed && !may_write(worker)) close(worker);
        const std::size_t part = worker.queue.empty() ? plan_.part() : worker.queue.front()->place.part;
        if (!worker.closed && part > worker.series.part()) {
            start_part(worker);
        } else if (!worker.queue.empty()) {
            write_oldest(worker);
        } else if (stopping_) {
            break;
        } else {
            wait_for_work(worker, lock);
        }
        if (!failure_.empty()) continue;
        if (worker.dirty && Clock::now() >= worker.synced + interval_) sync(worker);
        if (failure_.empty() && Clock::now() >= worker.checked + check_interval) check(worker);
    }
    if (!worker.closed) close(worker);
}

// Whether the oldest block of the thread comes before a failure.
bool ListModeWriter::may_write(const Worker& worker) const {
    return !worker.queue.empty() && worker.queue.front()->first_record < stop_at_;
}

// Whether the thread must write the block that is being filled, because it has waited long enough.
bool ListModeWriter::is_due(const Worker& worker) const {
    return current_records_ != 0 && &worker == workers_[plan_.next_file()].get() && worker.queue.empty() &&
           Clock::now() >= current_since_ + interval_;
}

void ListModeWriter::wait_for_work(Worker& worker, net::MutexLock& lock) {
    if (worker.closed) {
        worker.work.wait(lock.native());
        return;
    }
    auto deadline = worker.checked + check_interval;
    if (current_records_ != 0 && &worker == workers_[plan_.next_file()].get())
        deadline = std::min(deadline, current_since_ + interval_);
    if (worker.dirty) deadline = std::min(deadline, worker.synced + interval_);
    worker.work.wait_until(lock.native(), deadline);
}

void ListModeWriter::write_oldest(Worker& worker) {
    QueuedBlock& block = *worker.queue.front();
    if (may_write(worker)) {
        worker.stretches.clear();
        std::visit([&](const auto& all) { all.find(block.first_record, block.records, worker.stretches); },
                   waiting_);
        const auto error = timed_call(worker, [&] {
            worker.series.write_block({block.place.number, block.place.first_record, worker.stretches},
                                      block.first_record);
        });
        (error ? counts_.write_failed : counts_.written) += block.records;
        counts_.blocks += error ? 0 : 1;
        worker.dirty = true;
        if (error) fail(*error, block.first_record);
    } else {
        counts_.write_failed += block.records;
    }
    release(block.first_record, block.records);
    block.done = true;
    worker.queue.pop_front();
    settle();
    --counts_.queue_blocks;
    if (queue_blocks_ - counts_.queue_blocks >= enough_room_) room_.notify_one();
}

void ListModeWriter::start_part(Worker& worker) {
    const PartStart start = part_starts_[worker.series.part() + 1];
    const auto error = timed_call(worker, [&] { worker.series.start_part(start.record, start.time); });
    if (error) fail(*error, start.record);
}

void ListModeWriter::sync(Worker& worker) {
    const auto error = timed_call(worker, [&] { worker.series.sync(); });
    worker.synced = Clock::now();
    worker.dirty = false;
    if (error) fail(*error, 0);
}

void ListModeWriter::check(Worker& worker) {
    const auto error = unlocked(worker, [&] { worker.series.check(); });
    worker.checked = Clock::now();
    if (error) fail(*error, 0);
}

// Writes the index, after a failure at once, so that the file is whole even if the program is killed later.
void ListModeWriter::close(Worker& worker) {
    worker.closed = true;
    const auto error = timed_call(worker, [&] { worker.series.close(); });
    if (!error) return;
    if (failure_.empty()) {
        fail(*error, 0);
    } else {
        failure_ += "; the index could not be written either: " + error->code().message();
    }
}

// After this, appends count their records as failed, and every thread closes its file when it has written its
// blocks before `stop_at`.
void ListModeWriter::fail(const std::system_error& failure, std::uint64_t stop_at) {
    stop_at_ = std::min(stop_at_, stop_at);
    if (!failure_.empty()) return;  // the first one counts
    failure_ = failure.what();
    has_failure_.store(true, std::memory_order_release);
    marks_.clear();
    counts_.write_failed += current_records_;
    if (current_records_ != 0) release(current_first_, current_records_);
    current_first_ += std::exchange(current_records_, 0);
    room_.notify_one();
    for (const auto& worker : workers_)
        worker->work.notify_one();
}

}  // namespace petacq::daemon
