// Takes records from one thread and writes them to list-mode files in threads of its own, one for each file
// that is written at the same time, so that a slow disk fills a queue instead of delaying the producer.
//
// These are no disk threads (daemon/system/disk_thread.hpp), whose items belong to one thread each. Here the
// threads share one sequence of records, in the memory in which it came: whichever thread is due cuts a block
// that is not full, all change to the next part at the same record, a failure of one stops the others at that
// record, and the latency is that of the records that all have written. So one mutex guards the sequence; it
// is taken a few times for each slice and each block, not for each record.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <variant>
#include <vector>

#include "config/choices.hpp"
#include "daemon/listmode/format.hpp"
#include "daemon/listmode/latency.hpp"
#include "daemon/listmode/series.hpp"
#include "daemon/listmode/waiting_records.hpp"
#include "gpu/base/records.hpp"
#include "net/base/cores.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

struct ListModeOptions {
    RecordKind kind = RecordKind::coincidences;
    std::uint32_t block_bytes = 1U << 20;    ///< a multiple of 64
    std::uint32_t sync_interval_ms = 1'000;  ///< records reach the disk about this long after their append
    std::uint32_t queue_blocks = 256;        ///< blocks that may wait for the disk, at least 2
    std::uint32_t files = 1;                 ///< written side by side, each by a thread; at most max_files
    /// The first file is created with the first record, by the thread that writes it: without records there
    /// is none. Only with one file.
    bool on_first_record = false;
    SplitOptions split;  ///< into several parts
    config::Compression compression = config::Compression::none;
    Closing closing = {};   ///< empty: the files have no closing description
    net::Cores cores = {};  ///< on which the threads run
};

/// Counts of records unless noted. appended = written + write_failed + those not written yet.
struct ListModeCounts {
    std::uint64_t appended = 0;
    std::uint64_t written = 0;       ///< in whole blocks, passed to the kernel
    std::uint64_t write_failed = 0;  ///< could not be written, or were appended after a failure
    std::uint64_t bytes = 0;         ///< size of all files
    std::uint64_t blocks = 0;
    std::uint64_t stalls = 0;            ///< times that an append had to wait for room
    std::uint64_t queue_blocks = 0;      ///< blocks waiting for the disk
    std::uint64_t queue_high_water = 0;  ///< the most blocks that have waited
    std::uint64_t calls = 0;             ///< writes and syncs that have returned
    bool in_call = false;                ///< whether a write or sync is under way
    double busy_s = 0;                   ///< time spent in writes and syncs, by all threads
};

/// One of the writing threads.
struct WritingThread {
    std::uint64_t calls = 0;  ///< writes and syncs that have returned
    bool waiting = false;     ///< a write or sync is under way, or blocks wait for this thread
    double busy_s = 0;        ///< time spent in writes and syncs
};

/// One thread calls append(), mark() and finish(); any thread the rest.
///
/// Block b of a part goes to file b mod `files`, so the order of the records does not depend on their number.
class ListModeWriter {
  public:
    /// Creates the files of the first part, and starts the threads. `description` goes into the file headers.
    /// Throws as ListModeFile's constructor does, and std::invalid_argument for invalid options; leaves
    /// nothing behind then.
    ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options,
                   const nlohmann::json& description);
    /// The same with an empty description.
    ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options);
    /// Finishes the files.
    ~ListModeWriter();
    ListModeWriter(const ListModeWriter&) = delete;
    ListModeWriter& operator=(const ListModeWriter&) = delete;

    /// Takes the records, which must be in order, and leaves a vector of unspecified content, whose memory
    /// can be used again. Waits while queue_blocks blocks wait for the disk. After a failure the records are
    /// discarded and counted as write_failed. Throws std::logic_error for records of another kind and after
    /// finish().
    void append(gpu::RecordVector<gpu::Coincidence>&& records);
    void append(gpu::RecordVector<gpu::Single>&& records);
    void append(gpu::RecordVector<gpu::Tag>&& records);
    void append(gpu::RecordVector<gpu::Triple>&& records);

    /// Measures latency: everything that arrived at these times (steady clock, ns) has been appended by now,
    /// so the latency of each is known when all records appended so far are written. Ignores marks beyond
    /// max_marks that wait at the same time.
    void mark(std::span<const std::int64_t> arrivals);
    static constexpr std::size_t max_marks = 1024;

    /// Writes the remaining records and the indexes, syncs and closes, and waits until that is done. Returns
    /// the final counts: appended = written + write_failed. Further calls return the same.
    ListModeCounts finish();

    [[nodiscard]] ListModeCounts counts() const;
    /// In the order of the files.
    [[nodiscard]] std::vector<WritingThread> threads() const;
    /// The files of the first part, then those of the next, and so on. Only after finish().
    [[nodiscard]] std::vector<ListModePart> parts() const;
    /// The identity of each file. Only after finish().
    [[nodiscard]] std::vector<FileIdentity> identities() const;
    /// The recent latency from arrival until the write returned.
    [[nodiscard]] LatencySummary latency() const;
    /// Why writing failed, or that another program has removed, replaced or cut a file, which is noticed
    /// within about a second; empty while all is well. After a failure all files stay closed, with everything
    /// that was written before, and the blocks before the one that failed.
    [[nodiscard]] std::string failure() const;

  private:
    using Clock = std::chrono::steady_clock;
    struct QueuedBlock {
        BlockPlace place;
        std::uint64_t first_record = 0;  ///< number in the run
        std::uint64_t records = 0;
        bool done = false;  ///< written, or failed
    };
    struct Mark {
        std::uint64_t appended = 0;
        std::int64_t arrival_ns = 0;
    };
    /// One file of each part and the thread that writes it. The mutex guards all but the series.
    struct Worker {
        Worker(const ListModeLayout& layout, std::uint32_t file) : series(layout, file) {}
        ListModeSeries series;  ///< used by its thread alone until finish()
        std::condition_variable work;
        std::deque<QueuedBlock*> queue;  ///< its blocks in order; the first one may be under way
        std::vector<std::span<const std::byte>> stretches;  ///< of the block under way
        std::uint64_t bytes = 0;                            ///< of the series
        bool closed = false;
        bool dirty = false;  ///< something was written since the last sync
        Clock::time_point synced = Clock::now();
        Clock::time_point checked = synced;
        std::uint64_t calls = 0;
        bool in_call = false;
        Clock::time_point call_started;
        double busy_s = 0;
        std::jthread thread;
    };

    template <class Record>
    void append_records(RecordKind kind, gpu::RecordVector<Record>& records);
    bool begin_block(net::MutexLock& lock) PETACQ_REQUIRES(mutex_);
    void queue_current() PETACQ_REQUIRES(mutex_);
    void settle() PETACQ_REQUIRES(mutex_);
    void release(std::uint64_t first, std::uint64_t records) PETACQ_REQUIRES(mutex_);
    [[nodiscard]] static double busy_s_of(const Worker& worker);
    void start_threads(const net::Cores& cores);
    void stop();

    // The writing threads. The mutex is held except while the file is being written.
    void run(Worker& worker);
    void wait_for_work(Worker& worker, net::MutexLock& lock) PETACQ_REQUIRES(mutex_);
    [[nodiscard]] bool is_due(const Worker& worker) const PETACQ_REQUIRES(mutex_);
    void write_oldest(Worker& worker) PETACQ_REQUIRES(mutex_);
    void start_part(Worker& worker) PETACQ_REQUIRES(mutex_);
    void sync(Worker& worker) PETACQ_REQUIRES(mutex_);
    void check(Worker& worker) PETACQ_REQUIRES(mutex_);
    void close(Worker& worker) PETACQ_REQUIRES(mutex_);
    void fail(const std::system_error& failure, std::uint64_t stop_at) PETACQ_REQUIRES(mutex_);
    [[nodiscard]] bool may_write(const Worker& worker) const PETACQ_REQUIRES(mutex_);
    template <class Action>
    std::optional<std::system_error> unlocked(Worker& worker, Action action) PETACQ_REQUIRES(mutex_);
    template <class Action>
    std::optional<std::system_error> timed_call(Worker& worker, Action action) PETACQ_REQUIRES(mutex_);

    const RecordKind kind_;
    const std::size_t block_records_;  ///< in a full block
    const std::chrono::milliseconds interval_;
    const std::uint32_t queue_blocks_;
    const std::uint32_t
        enough_room_;  ///< blocks for which there must be room before a waiting append continues
    std::vector<std::unique_ptr<Worker>> workers_;

    mutable net::Mutex mutex_;
    std::condition_variable room_;
    std::variant<WaitingRecords<gpu::Coincidence>, WaitingRecords<gpu::Single>, WaitingRecords<gpu::Tag>,
                 WaitingRecords<gpu::Triple>>
        waiting_ PETACQ_GUARDED_BY(mutex_);
    BlockPlan plan_ PETACQ_GUARDED_BY(mutex_);
    struct PartStart {
        std::uint64_t record = 0;  ///< number in the run of its first record
        std::uint64_t time = 0;    ///< of that record; unspecified for the first part
    };
    std::vector<PartStart> part_starts_ PETACQ_GUARDED_BY(mutex_) = std::vector<PartStart>(1);
    std::deque<QueuedBlock> blocks_ PETACQ_GUARDED_BY(mutex_);  ///< from the oldest that has not been written
    std::uint64_t current_first_ PETACQ_GUARDED_BY(mutex_) = 0;    ///< number in the run
    std::uint64_t current_records_ PETACQ_GUARDED_BY(mutex_) = 0;  ///< of the block that is being filled
    Clock::time_point current_since_ PETACQ_GUARDED_BY(mutex_);
    bool stopping_ PETACQ_GUARDED_BY(mutex_) = false;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    std::atomic<bool> has_failure_{false};  ///< there is a failure: without one, to ask for it takes no lock
    /// After a failure, the blocks from this record of the run on are not written.
    std::uint64_t stop_at_ PETACQ_GUARDED_BY(mutex_) = UINT64_MAX;
    ListModeCounts counts_ PETACQ_GUARDED_BY(mutex_);      ///< without those of the workers
    std::uint64_t settled_ PETACQ_GUARDED_BY(mutex_) = 0;  ///< records written without a gap before them
    std::deque<Mark> marks_ PETACQ_GUARDED_BY(mutex_);     ///< ordered by `appended`
    RecentLatency latency_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::daemon
