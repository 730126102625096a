#include "daemon/listmode/writer.hpp"

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "daemon/listmode/set.hpp"
#include "net/base/thread.hpp"

namespace petacq::daemon {
namespace {

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Throws std::invalid_argument for invalid options.
const ListModeOptions& checked(const ListModeOptions& o) {
    check_block_bytes(o.block_bytes);
    if (o.queue_blocks < 2) throw std::invalid_argument("list-mode queue: expected at least 2 blocks");
    if (o.files < 1 || o.files > max_files)
        throw std::invalid_argument("list-mode files: expected 1 to " + std::to_string(max_files));
    assert(!o.on_first_record || o.files == 1);
    return o;
}

ListModeLayout layout_of(const std::filesystem::path& path, const ListModeOptions& o,
                         const nlohmann::json& description) {
    return {path,     o.kind,  o.block_bytes, std::make_shared<const nlohmann::json>(description),
            o.split,  o.files, o.compression, o.on_first_record,
            o.closing};
}

using AnyRecords = std::variant<WaitingRecords<gpu::Coincidence>, WaitingRecords<gpu::Single>,
                                WaitingRecords<gpu::Tag>, WaitingRecords<gpu::Triple>>;

AnyRecords make_records(const ListModeOptions& o) {
    const std::size_t max_spare_bytes = std::size_t{o.queue_blocks} * o.block_bytes;
    if (o.kind == RecordKind::coincidences) return WaitingRecords<gpu::Coincidence>(max_spare_bytes);
    if (o.kind == RecordKind::singles) return WaitingRecords<gpu::Single>(max_spare_bytes);
    if (o.kind == RecordKind::triples) return WaitingRecords<gpu::Triple>(max_spare_bytes);
    return WaitingRecords<gpu::Tag>(max_spare_bytes);
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
        for (std::uint32_t file = 0; file < options.files; ++file) {
            workers_.push_back(std::make_unique<Worker>(plan_.layout(), file));
            workers_.back()->bytes = workers_.back()->series.bytes();
        }
        start_threads(options.cores);
    } catch (...) {
        stop();
        for (const auto& worker : workers_)
            worker->series.discard();
        throw;
    }
}

// The threads take no signals: a blocked SIGXFSZ becomes the error EFBIG.
void ListModeWriter::start_threads(const net::Cores& cores) {
    const net::OnCores placed(cores);
    for (const auto& worker : workers_)
        worker->thread = net::start_thread("listmode", [this, w = worker.get()] { run(*w); });
}

ListModeWriter::~ListModeWriter() {
    finish();
}

void ListModeWriter::append(gpu::RecordVector<gpu::Coincidence>&& records) {
    append_records(RecordKind::coincidences, records);
}

void ListModeWriter::append(gpu::RecordVector<gpu::Single>&& records) {
    append_records(RecordKind::singles, records);
}

void ListModeWriter::append(gpu::RecordVector<gpu::Tag>&& records) {
    append_records(RecordKind::tags, records);
}

void ListModeWriter::append(gpu::RecordVector<gpu::Triple>&& records) {
    append_records(RecordKind::triples, records);
}

template <class Record>
void ListModeWriter::append_records(RecordKind kind, gpu::RecordVector<Record>& records) {
    if (kind != kind_) throw std::logic_error(std::string("this list-mode file takes ") + name_of(kind_));
    net::MutexLock lock(mutex_);
    if (stopping_) throw std::logic_error("append to a finished list-mode writer");
    std::uint64_t left = records.size();
    counts_.appended += left;
    if (!failure_.empty()) {
        counts_.write_failed += left;
        return;
    }
    try {
        std::get<WaitingRecords<Record>>(waiting_).take(records);
    } catch (...) {
        counts_.write_failed += left;  // no memory
        throw;
    }
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
    const std::uint64_t first = current_first_;
    const std::uint64_t first_time =
        std::visit([=](const auto& waiting) { return time_of(waiting.at(first)); }, waiting_);
    const BlockPlace place = plan_.place(first_time, current_records_);
    blocks_.push_back({place, current_first_, current_records_});
    Worker& worker = *workers_[place.file];
    worker.queue.push_back(&blocks_.back());
    worker.work.notify_one();
    if (place.part == part_starts_.size()) {
        part_starts_.push_back({current_first_, first_time});
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
    std::size_t most = 0;  // after a failure, the files may be in different parts
    for (const auto& parts : of_file)
        most = std::max(most, parts.size());
    std::vector<ListModePart> all;
    for (std::size_t part = 0; part < most; ++part) {
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
    if (!has_failure_.load(std::memory_order_acquire)) return {};
    const net::MutexLock lock(mutex_);
    return failure_;
}

}  // namespace petacq::daemon
