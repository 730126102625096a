#include "daemon/listmode_writer.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

namespace petacq::daemon {
namespace {

constexpr std::align_val_t page{4096};

std::byte* allocate(const ListModeOptions& options) {
    check_block_bytes(options.block_bytes);
    if (options.queue_blocks < 2) throw std::invalid_argument("list-mode queue: expected at least 2 blocks");
    const std::size_t bytes = std::size_t{options.queue_blocks} * options.block_bytes;
    auto* memory = static_cast<std::byte*>(::operator new(bytes, page));
    std::memset(memory, 0, bytes);  // the pages are there before the first record
    return memory;
}

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

void ListModeWriter::Release::operator()(std::byte* memory) const {
    ::operator delete(memory, page);
}

ListModeWriter::ListModeWriter(const std::filesystem::path& path, ListModeOptions options)
    : kind_(options.kind),
      record_bytes_(record_bytes_of(options.kind)),
      block_bytes_(options.block_bytes),
      interval_(options.sync_interval_ms),
      memory_(allocate(options)),
      file_(path, options.kind, options.block_bytes, options.description, options.split,
            std::move(options.calls)),
      queue_(options.queue_blocks),
      synced_(Clock::now()),
      marks_(max_marks) {
    for (std::size_t i = options.queue_blocks; i-- > 0;)
        free_.push_back(memory_.get() + i * block_bytes_);
    counts_.bytes = file_.bytes();
    // The thread takes no signals: those that ask the program to stop are for another, and SIGXFSZ becomes
    // the error EFBIG.
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
    std::unique_lock lock(mutex_);
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
    const std::scoped_lock lock(mutex_);
    if (!failure_.empty()) return;
    for (const std::int64_t arrival_ns : arrivals) {
        if (marks_count_ == max_marks) break;
        marks_[(marks_head_ + marks_count_++) % max_marks] = {counts_.appended, arrival_ns};
    }
    settle_marks();  // there may be nothing to wait for
}

void ListModeWriter::settle_marks() {
    if (marks_count_ == 0 || marks_[marks_head_].appended > counts_.written) return;
    const std::int64_t now_ns = steady_ns();
    while (marks_count_ != 0 && marks_[marks_head_].appended <= counts_.written) {
        latency_.record(now_ns - marks_[marks_head_].arrival_ns, now_ns);
        marks_head_ = (marks_head_ + 1) % max_marks;
        --marks_count_;
    }
}

// A block with room is there; false after a failure.
bool ListModeWriter::wait_for_block(std::unique_lock<std::mutex>& lock) {
    if (failure_.empty() && current_.data == nullptr && free_.empty()) {
        ++counts_.stalls;
        // Goes on when several are free: one at a time would be a change of threads for every block.
        room_.wait(lock, [&] { return free_.size() >= enough_free() || !failure_.empty(); });
    }
    if (!failure_.empty()) return false;
    if (current_.data == nullptr) {
        current_ = {free_.back(), sizeof(BlockHeader)};
        free_.pop_back();
        current_since_ = Clock::now();
        work_.notify_one();  // there is a deadline now
    }
    return true;
}

void ListModeWriter::queue_current() {
    queue_[(queue_head_ + counts_.queue_blocks) % queue_.size()] = current_;
    current_ = {};
    ++counts_.queue_blocks;
    counts_.queue_high_water = std::max(counts_.queue_high_water, counts_.queue_blocks);
    work_.notify_one();
}

std::uint64_t ListModeWriter::records_in(const Block& block) const {
    return (block.bytes - sizeof(BlockHeader)) / record_bytes_;
}

void ListModeWriter::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto now = Clock::now();
        const bool overdue = current_.data != nullptr && now >= current_since_ + interval_;
        if (current_.data != nullptr && counts_.queue_blocks == 0 && (overdue || stopping_)) queue_current();
        if (counts_.queue_blocks != 0) {
            write_oldest(lock);
        } else if (stopping_) {
            break;
        } else {
            wait_for_work(lock);
        }
        if (dirty_ && Clock::now() >= synced_ + interval_) sync(lock);
    }
    if (!failure_.empty()) return;
    lock.unlock();
    std::string why;
    try {
        file_.close();
    } catch (const std::system_error& error) {
        why = error.what();
    }
    lock.lock();
    failure_ = why;
    counts_.bytes = file_.bytes();
}

void ListModeWriter::wait_for_work(std::unique_lock<std::mutex>& lock) {
    if (current_.data == nullptr && !dirty_) {
        work_.wait(lock);
        return;
    }
    auto deadline = Clock::time_point::max();
    if (current_.data != nullptr) deadline = current_since_ + interval_;
    if (dirty_) deadline = std::min(deadline, synced_ + interval_);
    work_.wait_until(lock, deadline);
}

void ListModeWriter::write_oldest(std::unique_lock<std::mutex>& lock) {
    const Block block = queue_[queue_head_];
    if (failure_.empty()) {
        begin_call();
        lock.unlock();
        std::string why;
        try {
            file_.write_block({block.data, block.bytes});
        } catch (const std::system_error& error) {
            why = error.what();
        }
        lock.lock();
        end_call();
        if (why.empty()) {
            counts_.written += records_in(block);
            settle_marks();
            ++counts_.blocks;
            counts_.bytes = file_.bytes();
            dirty_ = true;
        } else {
            fail(lock, why);
        }
    }
    if (!failure_.empty()) counts_.write_failed += records_in(block);
    queue_head_ = (queue_head_ + 1) % queue_.size();
    --counts_.queue_blocks;
    free_.push_back(block.data);
    if (free_.size() >= enough_free()) room_.notify_one();
}

void ListModeWriter::begin_call() {
    counts_.in_call = true;
    call_began_ = Clock::now();
}

void ListModeWriter::end_call() {
    counts_.in_call = false;
    ++counts_.calls;
    counts_.busy_s += std::chrono::duration<double>(Clock::now() - call_began_).count();
}

void ListModeWriter::sync(std::unique_lock<std::mutex>& lock) {
    begin_call();
    lock.unlock();
    std::string why;
    try {
        file_.sync();
    } catch (const std::system_error& error) {
        why = error.what();
    }
    lock.lock();
    end_call();
    synced_ = Clock::now();
    dirty_ = false;
    if (!why.empty()) fail(lock, why);
}

// From here on appends count their records as failed. The index is tried at once, so that the file is whole
// even if the program does not come to its end.
void ListModeWriter::fail(std::unique_lock<std::mutex>& lock, const std::string& why) {
    failure_ = why;
    dirty_ = false;
    marks_count_ = 0;
    room_.notify_one();
    lock.unlock();
    std::string more;
    try {
        file_.close();
    } catch (const std::system_error& error) {
        more = "; the index could not be written either: " + error.code().message();
    }
    lock.lock();
    failure_ += more;
    counts_.bytes = file_.bytes();
}

ListModeCounts ListModeWriter::finish() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        work_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    return counts();
}

ListModeCounts ListModeWriter::counts() const {
    const std::scoped_lock lock(mutex_);
    ListModeCounts counts = counts_;
    if (counts.in_call) counts.busy_s += std::chrono::duration<double>(Clock::now() - call_began_).count();
    return counts;
}

LatencySummary ListModeWriter::latency() const {
    const std::scoped_lock lock(mutex_);
    return latency_.summary(steady_ns());
}

std::string ListModeWriter::failure() const {
    const std::scoped_lock lock(mutex_);
    return failure_;
}

}  // namespace petacq::daemon
