#include "daemon/seconds/file.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

namespace petacq::daemon {

SecondsFile::SecondsFile(const std::filesystem::path& path, const config::Geometry& geometry,
                         nlohmann::json description, config::Compression compression,
                         std::chrono::milliseconds sync_interval, Closing closing, bool gammas)
    : record_(geometry, gammas), closing_(std::move(closing)) {
    description["modules"] = geometry.bdm_count;
    description["fields"] = record_.description();
    const auto block_bytes = static_cast<std::uint32_t>(record_.bytes() + sizeof(BlockHeader));
    file_ = std::make_unique<ListModeFile>(path, RecordKind::seconds, block_bytes, description, compression,
                                           record_.bytes(), static_cast<bool>(closing_));
    part_.name = path.filename().string();
    counts_.bytes = file_->bytes();
    try {
        thread_.emplace("seconds",
                        DiskWork<Bytes>{.write = [this](Bytes& record) { write(record); },
                                        .drop = [this](const Bytes& record) { drop(record); },
                                        .sync = [this] { sync(); },
                                        .close = [this] { close(); },
                                        .fail = [this](const std::string& why) { return fail(why); }},
                        max_waiting, sync_interval);
    } catch (...) {
        file_->discard();
        throw;
    }
}

SecondsFile::~SecondsFile() = default;

void SecondsFile::append(const Second& second) {
    thread_->check_running();
    Bytes record;
    spare_.try_dequeue(record);
    record.resize(record_.bytes());
    record_.write(second, record);
    {
        const net::MutexLock lock(mutex_);
        ++counts_.appended;
    }
    thread_->put(std::move(record));
}

/// The thread takes an empty record as the request.
void SecondsFile::start_again() {
    thread_->put_at_once({});
}

SecondsCounts SecondsFile::finish() {
    thread_->finish();
    return counts();
}

SecondsCounts SecondsFile::counts() const {
    const DiskThreadCounts thread = thread_->counts();
    const net::MutexLock lock(mutex_);
    SecondsCounts counts = counts_;
    counts.calls = thread.calls;
    counts.waiting = thread.waiting;
    counts.busy_s = thread.busy_s;
    return counts;
}

std::string SecondsFile::failure() const {
    return thread_->failure();
}

void SecondsFile::write(Bytes& record) {
    if (record.empty()) return remove_seconds();
    const std::uint64_t time = time_of(record.data());
    file_->write_block(std::span(std::as_const(record)));
    if (part_.records == 0) part_.first_time = time;
    part_.last_time = time;
    ++part_.records;
    count_bytes();
    {
        const net::MutexLock lock(mutex_);
        ++counts_.written;
    }
    spare_.enqueue(std::move(record));
}

void SecondsFile::remove_seconds() {
    file_->remove_blocks();
    part_ = {.name = part_.name};
    count_bytes();
    const net::MutexLock lock(mutex_);
    counts_.appended -= counts_.written;
    counts_.written = 0;
}

void SecondsFile::drop(const Bytes& record) {
    if (record.empty()) return;
    const net::MutexLock lock(mutex_);
    ++counts_.write_failed;
}

void SecondsFile::sync() {
    file_->sync();
    count_bytes();
}

void SecondsFile::close() {
    if (closing_) {
        file_->close(closing_({{}, {}, part_.records != 0 ? std::optional(part_.last_time) : std::nullopt}));
    } else {
        file_->close();
    }
    count_bytes();
}

// The index is written at once, so that the file is whole even if the program is killed later.
std::string SecondsFile::fail(const std::string& why) {
    std::string both = why;
    try {
        close();
    } catch (const std::system_error& error) {
        both += "; the index could not be written either: " + error.code().message();
    }
    count_bytes();
    return both;
}

void SecondsFile::count_bytes() {
    const net::MutexLock lock(mutex_);
    counts_.bytes = part_.bytes = file_->bytes();
}

}  // namespace petacq::daemon
