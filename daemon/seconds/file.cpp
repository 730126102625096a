#include "daemon/seconds/file.hpp"

#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "net/base/thread.hpp"

namespace petacq::daemon {

SecondsFile::SecondsFile(const std::filesystem::path& path, const config::Geometry& geometry,
                         nlohmann::json description, config::Compression compression,
                         std::chrono::milliseconds sync_interval, Closing closing)
    : record_(geometry), sync_interval_(sync_interval), closing_(std::move(closing)) {
    description["modules"] = geometry.bdm_count;
    description["fields"] = record_.description();
    const auto block_bytes = static_cast<std::uint32_t>(record_.bytes() + sizeof(BlockHeader));
    file_ = std::make_unique<ListModeFile>(path, RecordKind::seconds, block_bytes, description, compression,
                                           record_.bytes(), static_cast<bool>(closing_));
    part_.name = path.filename().string();
    counts_.bytes = file_->bytes();
    try {
        thread_ = net::start_thread("seconds", [this] { run(); });
    } catch (...) {
        file_->discard();
        throw;
    }
}

SecondsFile::~SecondsFile() {
    finish();
}

void SecondsFile::append(const Second& second) {
    Bytes record;
    {
        net::MutexLock lock(mutex_);
        if (stopping_) throw std::logic_error("append to a finished file of seconds");
        while (waiting_.size() >= max_waiting && failure_.empty())
            room_.wait(lock.native());
        if (!spare_.empty()) {
            record = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    record.resize(record_.bytes());
    record_.write(second, record);
    const net::MutexLock lock(mutex_);
    ++counts_.appended;
    if (!failure_.empty()) {
        ++counts_.write_failed;
        return;
    }
    waiting_.push_back(std::move(record));
    work_.notify_one();
}

void SecondsFile::start_again() {
    const net::MutexLock lock(mutex_);
    if (stopping_) throw std::logic_error("start_again of a finished file of seconds");
    counts_.appended -= waiting_.size();
    waiting_.clear();
    again_ = true;
    work_.notify_one();
}

SecondsCounts SecondsFile::finish() {
    {
        const net::MutexLock lock(mutex_);
        stopping_ = true;
        work_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    return counts();
}

SecondsCounts SecondsFile::counts() const {
    const net::MutexLock lock(mutex_);
    SecondsCounts counts = counts_;
    counts.waiting = in_call_ || !waiting_.empty();
    return counts;
}

std::string SecondsFile::failure() const {
    const net::MutexLock lock(mutex_);
    return failure_;
}

void SecondsFile::run() {
    Clock::time_point sync_at = Clock::now() + sync_interval_;
    bool dirty = false;
    for (bool last = false; !last;) {
        Bytes record;
        bool again = false;
        {
            net::MutexLock lock(mutex_);
            while (waiting_.empty() && !again_ && !stopping_) {
                if (!dirty) {
                    work_.wait(lock.native());
                } else if (work_.wait_until(lock.native(), sync_at) == std::cv_status::timeout) {
                    break;
                }
            }
            if (!waiting_.empty()) {
                record = std::move(waiting_.front());
                waiting_.pop_front();
                in_call_ = true;
                room_.notify_one();
            }
            again = std::exchange(again_, false);
            last = stopping_ && waiting_.empty();
        }
        if (again) empty();
        if (!record.empty()) {
            write(record);
            dirty = true;
            const net::MutexLock lock(mutex_);
            spare_.push_back(std::move(record));
        }
        if (dirty && Clock::now() >= sync_at) {
            call([&] { file_->sync(); });
            dirty = false;
            sync_at = Clock::now() + sync_interval_;
        }
    }
    if (failure().empty()) close();
}

void SecondsFile::empty() {
    if (!call([&] { file_->remove_blocks(); })) return;
    part_ = {.name = part_.name, .bytes = part_.bytes};
    const net::MutexLock lock(mutex_);
    counts_.appended -= counts_.written;
    counts_.written = 0;
}

void SecondsFile::write(const Bytes& record) {
    const std::uint64_t time = time_of(record.data());
    const bool written = call([&] { file_->write_block(std::span(record)); });
    if (written) {
        if (part_.records == 0) part_.first_time = time;
        part_.last_time = time;
        ++part_.records;
    }
    const net::MutexLock lock(mutex_);
    ++(written ? counts_.written : counts_.write_failed);
}

// Counts the call. After a failure nothing is called: false.
template <class Action>
bool SecondsFile::call(Action action) {
    std::string why;
    const Clock::time_point started = Clock::now();
    bool failed = false;
    {
        const net::MutexLock lock(mutex_);
        failed = !failure_.empty();
        in_call_ = !failed;
    }
    if (failed) return false;
    try {
        action();
    } catch (const std::system_error& error) {
        why = error.what();
    } catch (const std::bad_alloc&) {
        why = "no memory to write seconds";
    }
    {
        const net::MutexLock lock(mutex_);
        in_call_ = false;
        ++counts_.calls;
        counts_.busy_s += std::chrono::duration<double>(Clock::now() - started).count();
        counts_.bytes = part_.bytes = file_->bytes();
    }
    if (why.empty()) return true;
    fail(why);
    return false;
}

// The index is written at once, so that the file is whole even if the program is killed later.
void SecondsFile::fail(const std::string& why) {
    std::string both = why;
    try {
        close_file();
    } catch (const std::system_error& error) {
        both += "; the index could not be written either: " + error.code().message();
    }
    const net::MutexLock lock(mutex_);
    counts_.bytes = part_.bytes = file_->bytes();
    counts_.write_failed += waiting_.size();
    waiting_.clear();
    failure_ = both;
    room_.notify_one();
}

void SecondsFile::close() {
    call([&] { close_file(); });
}

void SecondsFile::close_file() {
    if (!closing_) return file_->close();
    file_->close(closing_({{}, {}, part_.records != 0 ? std::optional(part_.last_time) : std::nullopt}));
}

}  // namespace petacq::daemon
