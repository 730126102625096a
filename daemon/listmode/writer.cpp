#include "daemon/listmode/writer.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace petacq::daemon {
namespace {

/// How often the writing thread looks whether its files are still there.
constexpr std::chrono::seconds check_interval{1};

std::size_t memory_bytes(const ListModeOptions& options) {
    check_block_bytes(options.block_bytes);
    if (options.queue_blocks < 2) throw std::invalid_argument("list-mode queue: expected at least 2 blocks");
    return std::size_t{options.queue_blocks} * options.block_bytes;
}

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

ListModeWriter::ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options)
    : ListModeWriter(path, options, nlohmann::json::object()) {}

ListModeWriter::ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options,
                               const nlohmann::json& description)
    : kind_(options.kind),
      record_bytes_(record_bytes_of(options.kind)),
      block_bytes_(options.block_bytes),
      interval_(options.sync_interval_ms),
      enough_free_((options.queue_blocks + 3) / 4),
      memory_(memory_bytes(options)),
      file_(path, options.kind, options.block_bytes, description, options.split),
      synced_(Clock::now()),
      checked_(synced_) {
    for (std::size_t i = options.queue_blocks; i-- > 0;)
        free_.push_back(memory_.data() + i * block_bytes_);
    counts_.bytes = file_.bytes();
    // The thread takes no signals: another thread handles those that stop the program, and a blocked SIGXFSZ
    // becomes the error EFBIG.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { run(); });
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "listmode");
}

ListModeWriter::~ListModeWriter() {
    finish();
}

void ListModeWriter::append(std::span<const gpu::Coincidence> records) {
    append_bytes(RecordKind::coincidences, std::as_bytes(records));
}

void ListModeWriter::append(std::span<const gpu::Single> records) {
    append_bytes(RecordKind::singles, std::as_bytes(records));
}

void ListModeWriter::append_bytes(RecordKind kind, std::span<const std::byte> bytes) {
    if (kind != kind_) throw std::logic_error(std::string("this list-mode file takes ") + name_of(kind_));
    net::MutexLock lock(mutex_);
    if (stopping_) throw std::logic_error("append to a finished list-mode writer");
    counts_.appended += bytes.size() / record_bytes_;
    while (!bytes.empty()) {
        if (!wait_for_block(lock)) {
            counts_.write_failed += bytes.size() / record_bytes_;
            return;
        }
        const std::size_t room = (block_bytes_ - current_.bytes) / record_bytes_ * record_bytes_;
        const std::size_t taken = std::min(bytes.size(), room);
        std::memcpy(current_.data + current_.bytes, bytes.data(), taken);
        current_.bytes += taken;
        bytes = bytes.subspan(taken);
        if (taken == room) queue_current();
    }
}

void ListModeWriter::mark(std::span<const std::int64_t> arrivals) {
    const net::MutexLock lock(mutex_);
    if (!failure_.empty()) return;
    for (const std::int64_t arrival_ns : arrivals) {
        if (marks_.size() == max_marks) break;
        marks_.push_back({counts_.appended, arrival_ns});
    }
    settle_marks();  // everything may be written already
}

void ListModeWriter::settle_marks() {
    const std::int64_t now_ns = steady_ns();
    for (; !marks_.empty() && marks_.front().appended <= counts_.written; marks_.pop_front())
        latency_.record(now_ns - marks_.front().arrival_ns, now_ns);
}

// Waits until the current block has room. False after a failure.
bool ListModeWriter::wait_for_block(net::MutexLock& lock) {
    if (failure_.empty() && current_.data == nullptr && free_.empty()) {
        ++counts_.stalls;
        // Waits for several free buffers: with one at a time, every block would cost a change of threads.
        while (free_.size() < enough_free_ && failure_.empty())
            room_.wait(lock.native());
    }
    if (!failure_.empty()) return false;
    if (current_.data == nullptr) {
        current_ = {free_.back(), sizeof(BlockHeader)};
        free_.pop_back();
        current_since_ = Clock::now();
        work_.notify_one();  // the writing thread must wait no longer than until the block is overdue
    }
    return true;
}

void ListModeWriter::queue_current() {
    queue_.push_back(current_);
    current_ = {};
    counts_.queue_blocks = queue_.size();
    counts_.queue_high_water = std::max(counts_.queue_high_water, counts_.queue_blocks);
    work_.notify_one();
}

std::uint64_t ListModeWriter::records_in(const Block& block) const {
    return (block.bytes - sizeof(BlockHeader)) / record_bytes_;
}

// Calls `action` on the file while other threads may append. Returns the error of a call that failed.
template <class Action>
std::optional<std::system_error> ListModeWriter::unlocked(Action action) {
    std::optional<std::system_error> failure;
    mutex_.unlock();
    try {
        action();
    } catch (const std::system_error& error) {
        failure = error;
    }
    mutex_.lock();
    counts_.bytes = file_.bytes();
    return failure;
}

// The same, and counts the call.
template <class Action>
std::optional<std::system_error> ListModeWriter::timed_call(Action action) {
    counts_.in_call = true;
    call_started_ = Clock::now();
    auto failure = unlocked(action);
    counts_.in_call = false;
    ++counts_.calls;
    counts_.busy_s += std::chrono::duration<double>(Clock::now() - call_started_).count();
    return failure;
}

void ListModeWriter::run() {
    net::MutexLock lock(mutex_);
    for (;;) {
        const bool overdue = current_.data != nullptr && Clock::now() >= current_since_ + interval_;
        if (current_.data != nullptr && counts_.queue_blocks == 0 && (overdue || stopping_)) queue_current();
        if (counts_.queue_blocks != 0) {
            write_oldest();
        } else if (stopping_) {
            break;
        } else {
            wait_for_work(lock);
        }
        if (dirty_ && Clock::now() >= synced_ + interval_) sync();
        if (failure_.empty() && Clock::now() >= checked_ + check_interval) check();
    }
    if (!failure_.empty()) return;
    if (const auto error = unlocked([this] { file_.close(); })) failure_ = error->what();
}

void ListModeWriter::wait_for_work(net::MutexLock& lock) {
    if (current_.data == nullptr && !failure_.empty()) {
        work_.wait(lock.native());
        return;
    }
    auto deadline = failure_.empty() ? checked_ + check_interval : Clock::time_point::max();
    if (current_.data != nullptr) deadline = std::min(deadline, current_since_ + interval_);
    if (dirty_) deadline = std::min(deadline, synced_ + interval_);
    work_.wait_until(lock.native(), deadline);
}

void ListModeWriter::write_oldest() {
    const Block block = queue_.front();
    if (failure_.empty()) {
        const auto error = timed_call([&] { file_.write_block({block.data, block.bytes}); });
        if (error) {
            close_after(*error);
        } else {
            counts_.written += records_in(block);
            settle_marks();
            ++counts_.blocks;
            dirty_ = true;
        }
    }
    if (!failure_.empty()) counts_.write_failed += records_in(block);
    queue_.pop_front();
    counts_.queue_blocks = queue_.size();
    free_.push_back(block.data);
    if (free_.size() >= enough_free_) room_.notify_one();
}

void ListModeWriter::sync() {
    const auto error = timed_call([this] { file_.sync(); });
    synced_ = Clock::now();
    dirty_ = false;
    if (error) close_after(*error);
}

void ListModeWriter::check() {
    const auto error = unlocked([this] { file_.check(); });
    checked_ = Clock::now();
    if (error) close_after(*error);
}

// After this, appends count their records as failed. Writes the index at once, so that the file is whole even
// if the program is killed later.
void ListModeWriter::close_after(const std::system_error& failure) {
    failure_ = failure.what();
    dirty_ = false;
    marks_.clear();
    room_.notify_one();
    if (const auto error = unlocked([this] { file_.close(); }))
        failure_ += "; the index could not be written either: " + error->code().message();
}

ListModeCounts ListModeWriter::finish() {
    {
        const net::MutexLock lock(mutex_);
        stopping_ = true;
        work_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    return counts();
}

ListModeCounts ListModeWriter::counts() const {
    const net::MutexLock lock(mutex_);
    ListModeCounts counts = counts_;
    if (counts.in_call) counts.busy_s += std::chrono::duration<double>(Clock::now() - call_started_).count();
    return counts;
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
