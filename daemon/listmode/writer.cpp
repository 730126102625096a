#include "daemon/listmode/writer.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "daemon/listmode/set.hpp"

namespace petacq::daemon {
namespace {

/// How often a writing thread looks whether its files are still there.
constexpr std::chrono::seconds check_interval{1};

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Throws std::invalid_argument for invalid options.
const ListModeOptions& checked(const ListModeOptions& o) {
    check_block_bytes(o.block_bytes);
    if (o.queue_blocks < 2) throw std::invalid_argument("list-mode queue: expected at least 2 blocks");
    if (o.files < 1 || o.files > most_files)
        throw std::invalid_argument("list-mode files: expected 1 to " + std::to_string(most_files));
    return o;
}

ListModeLayout layout_of(const std::filesystem::path& path, const ListModeOptions& o,
                         const nlohmann::json& description) {
    return {path,    o.kind, o.block_bytes, std::make_shared<const nlohmann::json>(description),
            o.split, o.files};
}

using AnyRecords = std::variant<WaitingRecords<gpu::Coincidence>, WaitingRecords<gpu::Single>>;

AnyRecords make_records(const ListModeOptions& o) {
    const std::size_t most_spare_bytes = std::size_t{o.queue_blocks} * o.block_bytes;
    if (o.kind == RecordKind::coincidences) return WaitingRecords<gpu::Coincidence>(most_spare_bytes);
    return WaitingRecords<gpu::Single>(most_spare_bytes);
}

}  // namespace

ListModeWriter::ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options)
    : ListModeWriter(path, options, nlohmann::json::object()) {}

ListModeWriter::ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options,
                               const nlohmann::json& description)
    : kind_(checked(options).kind),
      block_records_((options.block_bytes - sizeof(BlockHeader)) / record_bytes_of(options.kind)),
      interval_(options.sync_interval_ms),
      queue_blocks_(options.queue_blocks),
      enough_room_((options.queue_blocks + 3) / 4),
      waiting_(make_records(options)),
      plan_(layout_of(path, options, description)) {
    try {
        open_files(layout_of(path, options, description));
        start_threads();
    } catch (...) {
        stop();
        for (const auto& worker : workers_)
            worker->series.discard();
        throw;
    }
}

void ListModeWriter::open_files(const ListModeLayout& layout) {
    for (std::uint32_t file = 0; file < layout.files; ++file) {
        workers_.push_back(std::make_unique<Worker>(layout, file));
        workers_.back()->bytes = workers_.back()->series.bytes();
    }
}

void ListModeWriter::start_threads() {
    // The threads take no signals: another thread handles those that stop the program, and a blocked SIGXFSZ
    // becomes the error EFBIG.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (const auto& worker : workers_) {
            worker->thread = std::thread([this, w = worker.get()] { run(*w); });
            pthread_setname_np(worker->thread.native_handle(), "listmode");
        }
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ListModeWriter::~ListModeWriter() {
    finish();
}

void ListModeWriter::append(std::vector<gpu::Coincidence>&& records) {
    append_records(RecordKind::coincidences, records);
}

void ListModeWriter::append(std::vector<gpu::Single>&& records) {
    append_records(RecordKind::singles, records);
}

template <class Record>
void ListModeWriter::append_records(RecordKind kind, std::vector<Record>& records) {
    if (kind != kind_) throw std::logic_error(std::string("this list-mode file takes ") + name_of(kind_));
    net::MutexLock lock(mutex_);
    if (stopping_) throw std::logic_error("append to a finished list-mode writer");
    std::uint64_t left = records.size();
    counts_.appended += left;
    if (!failure_.empty()) {
        counts_.write_failed += left;
        return;
    }
    std::get<WaitingRecords<Record>>(waiting_).take(records);
    bool begun = false;
    while (left != 0) {
        if (current_records_ == 0) {
            if (!begin_block(lock)) {
                counts_.write_failed += left;
                release(current_first_, left);
                return;
            }
            begun = true;
        }
        const std::uint64_t some = std::min<std::uint64_t>(left, block_records_ - current_records_);
        current_records_ += some;
        left -= some;
        if (current_records_ == block_records_) queue_current();
    }
    // A thread must wait no longer than until the block is overdue.
    if (begun && current_records_ != 0) workers_[plan_.next_file()]->work.notify_one();
}

// Waits until there is room for another block. False after a failure.
bool ListModeWriter::begin_block(net::MutexLock& lock) {
    if (failure_.empty() && counts_.queue_blocks >= queue_blocks_) {
        ++counts_.stalls;
        // Waits for room for several: with one at a time, every block would cost a change of threads.
        while (queue_blocks_ - counts_.queue_blocks < enough_room_ && failure_.empty())
            room_.wait(lock.native());
    }
    current_since_ = Clock::now();
    return failure_.empty();
}

void ListModeWriter::queue_current() {
    const std::uint64_t first_time =
        std::visit([&](const auto& waiting) { return waiting.at(current_first_).time; }, waiting_);
    const BlockPlace place = plan_.place(first_time, current_records_);
    blocks_.push_back({place, current_first_, current_records_});
    Worker& worker = *workers_[place.file];
    worker.queue.push_back(&blocks_.back());
    worker.work.notify_one();
    if (place.part == part_starts_.size()) {
        part_starts_.push_back(current_first_);
        for (const auto& other : workers_)
            other->work.notify_one();
    }
    current_first_ += std::exchange(current_records_, 0);
    ++counts_.queue_blocks;
    counts_.queue_high_water = std::max(counts_.queue_high_water, counts_.queue_blocks);
}

void ListModeWriter::release(std::uint64_t first, std::uint64_t records) {
    std::visit([&](auto& waiting) { waiting.release(first, records); }, waiting_);
}

void ListModeWriter::mark(std::span<const std::int64_t> arrivals) {
    const net::MutexLock lock(mutex_);
    if (!failure_.empty()) return;
    for (const std::int64_t arrival_ns : arrivals) {
        if (marks_.size() == max_marks) break;
        marks_.push_back({counts_.appended, arrival_ns});
    }
    settle();  // everything may be written already
}

void ListModeWriter::settle() {
    for (; !blocks_.empty() && blocks_.front().done; blocks_.pop_front())
        settled_ += blocks_.front().records;
    if (marks_.empty() || marks_.front().appended > settled_) return;
    const std::int64_t now_ns = steady_ns();
    for (; !marks_.empty() && marks_.front().appended <= settled_; marks_.pop_front())
        latency_.record(now_ns - marks_.front().arrival_ns, now_ns);
}

// Calls `action` on the file while other threads go on. Returns the error of a call that failed.
template <class Action>
std::optional<std::system_error> ListModeWriter::unlocked(Worker& worker, Action action) {
    std::optional<std::system_error> failure;
    mutex_.unlock();
    try {
        action();
    } catch (const std::system_error& error) {
        failure = error;
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
    Block& block = *worker.queue.front();
    if (may_write(worker)) {
        worker.stretches.clear();
        std::visit(
            [&](const auto& waiting) { waiting.find(block.first_record, block.records, worker.stretches); },
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
    const std::uint64_t first_record = part_starts_[worker.series.part() + 1];
    const auto error = timed_call(worker, [&] { worker.series.start_part(first_record); });
    if (error) fail(*error, first_record);
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
    const auto error = unlocked(worker, [&] { worker.series.close(); });
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
    marks_.clear();
    counts_.write_failed += current_records_;
    if (current_records_ != 0) release(current_first_, current_records_);
    current_first_ += std::exchange(current_records_, 0);
    room_.notify_one();
    for (const auto& worker : workers_)
        worker->work.notify_one();
}

void ListModeWriter::stop() {
    {
        const net::MutexLock lock(mutex_);
        if (current_records_ != 0) queue_current();
        stopping_ = true;
        for (const auto& worker : workers_)
            worker->work.notify_one();
    }
    for (const auto& worker : workers_)
        if (worker->thread.joinable()) worker->thread.join();
}

ListModeCounts ListModeWriter::finish() {
    stop();
    return counts();
}

ListModeCounts ListModeWriter::counts() const {
    const net::MutexLock lock(mutex_);
    ListModeCounts counts = counts_;
    for (const auto& worker : workers_) {
        counts.bytes += worker->bytes;
        counts.calls += worker->calls;
        counts.in_call = counts.in_call || worker->in_call;
        counts.busy_s += busy_s_of(*worker);
    }
    return counts;
}

std::vector<WritingThread> ListModeWriter::threads() const {
    const net::MutexLock lock(mutex_);
    std::vector<WritingThread> threads;
    for (const auto& worker : workers_)
        threads.push_back({worker->calls, worker->in_call || !worker->queue.empty(), busy_s_of(*worker)});
    return threads;
}

std::vector<ListModePart> ListModeWriter::parts() const {
    std::vector<std::vector<ListModePart>> of_file;
    for (const auto& worker : workers_)
        of_file.push_back(worker->series.parts());
    std::vector<ListModePart> all;
    for (std::size_t part = 0; part < of_file.front().size(); ++part) {
        for (const auto& parts : of_file)
            if (part < parts.size()) all.push_back(parts[part]);
    }
    return all;
}

std::vector<FileIdentity> ListModeWriter::identities() const {
    std::vector<FileIdentity> all;
    for (const auto& worker : workers_) {
        const std::vector<FileIdentity> files = worker->series.identities();
        all.insert(all.end(), files.begin(), files.end());
    }
    return all;
}

LatencySummary ListModeWriter::latency() const {
    const net::MutexLock lock(mutex_);
    return latency_.summary(steady_ns());
}

std::string ListModeWriter::failure() const {
    const net::MutexLock lock(mutex_);
    return failure_;
}

}  // namespace petacq::daemon
