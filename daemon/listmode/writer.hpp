// Takes records from one thread and writes them to a list-mode file in a thread of its own, so that a slow
// disk fills a queue instead of delaying the producer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "daemon/listmode/format.hpp"
#include "daemon/listmode/latency.hpp"
#include "daemon/listmode/series.hpp"
#include "gpu/types.hpp"
#include "net/mutex.hpp"

namespace petacq::daemon {

struct ListModeOptions {
    RecordKind kind = RecordKind::coincidences;
    std::uint32_t block_bytes = 1U << 20;    ///< a multiple of 64
    std::uint32_t sync_interval_ms = 1'000;  ///< records reach the disk about this long after their append
    std::uint32_t queue_blocks = 64;         ///< number of block buffers, at least 2
    SplitOptions split;                      ///< into several files
};

/// Counts of records unless noted. appended = written + write_failed + those not written yet.
struct ListModeCounts {
    std::uint64_t appended = 0;
    std::uint64_t written = 0;       ///< in whole blocks, passed to the kernel
    std::uint64_t write_failed = 0;  ///< could not be written, or were appended after a failure
    std::uint64_t bytes = 0;         ///< size of the file, or of all files of a series
    std::uint64_t blocks = 0;
    std::uint64_t stalls = 0;            ///< appends that had to wait for a free buffer
    std::uint64_t queue_blocks = 0;      ///< blocks waiting for the disk
    std::uint64_t queue_high_water = 0;  ///< the most blocks that have waited
    std::uint64_t calls = 0;             ///< writes and syncs that have returned
    bool in_call = false;                ///< whether a write or sync is under way
    double busy_s = 0;                   ///< time spent in writes and syncs
};

/// One thread calls append(), mark() and finish(); any thread the rest.
class ListModeWriter {
  public:
    /// Creates the file, or the first of a series, and starts the thread. `description` goes into the file
    /// header. Throws as ListModeFile's constructor does, and std::invalid_argument for invalid options.
    ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options,
                   const nlohmann::json& description);
    /// The same with an empty description.
    ListModeWriter(const std::filesystem::path& path, const ListModeOptions& options);
    /// Finishes the file.
    ~ListModeWriter();
    ListModeWriter(const ListModeWriter&) = delete;
    ListModeWriter& operator=(const ListModeWriter&) = delete;

    /// Copies the records, which must be in order. Waits while all buffers wait for the disk. After a failure
    /// the records are discarded and counted as write_failed. Throws std::logic_error for records of the
    /// other kind and after finish().
    void append(std::span<const gpu::Coincidence> records);
    void append(std::span<const gpu::Single> records);

    /// Measures latency: everything that arrived at these times (steady clock, ns) has been appended by now,
    /// so the latency of each is known when all records appended so far are written. Ignores marks beyond
    /// max_marks that wait at the same time.
    void mark(std::span<const std::int64_t> arrivals);
    static constexpr std::size_t max_marks = 1024;

    /// Writes the remaining records and the index, syncs and closes, and waits until that is done. Returns
    /// the final counts: appended = written + write_failed. Further calls return the same.
    ListModeCounts finish();

    [[nodiscard]] ListModeCounts counts() const;
    /// The files, in order. Only after finish().
    [[nodiscard]] std::vector<ListModePart> parts() const { return file_.parts(); }
    /// The identity of each file, in the order of the files. Only after finish().
    [[nodiscard]] std::vector<FileIdentity> identities() const { return file_.identities(); }
    /// The recent latency from arrival until the write returned.
    [[nodiscard]] LatencySummary latency() const;
    /// Why writing failed, or that another program has removed, replaced or cut a file, which is noticed
    /// within about a second; empty while all is well. After a failure the file stays closed, with everything
    /// that was written before.
    [[nodiscard]] std::string failure() const;

  private:
    using Clock = std::chrono::steady_clock;
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;  ///< header included
    };
    struct Mark {
        std::uint64_t appended = 0;
        std::int64_t arrival_ns = 0;
    };

    void append_bytes(RecordKind kind, std::span<const std::byte> bytes);
    bool wait_for_block(net::MutexLock& lock) PETACQ_REQUIRES(mutex_);
    void queue_current() PETACQ_REQUIRES(mutex_);
    void settle_marks() PETACQ_REQUIRES(mutex_);
    [[nodiscard]] std::uint64_t records_in(const Block& block) const;

    // The writing thread. The mutex is held except while the file is being written.
    void run();
    void wait_for_work(net::MutexLock& lock) PETACQ_REQUIRES(mutex_);
    void write_oldest() PETACQ_REQUIRES(mutex_);
    void sync() PETACQ_REQUIRES(mutex_);
    void check() PETACQ_REQUIRES(mutex_);
    void close_after(const std::system_error& failure) PETACQ_REQUIRES(mutex_);
    template <class Action>
    std::optional<std::system_error> unlocked(Action action) PETACQ_REQUIRES(mutex_);
    template <class Action>
    std::optional<std::system_error> timed_call(Action action) PETACQ_REQUIRES(mutex_);

    const RecordKind kind_;
    const std::size_t record_bytes_;
    const std::size_t block_bytes_;
    const std::chrono::milliseconds interval_;
    const std::size_t enough_free_;  ///< free buffers at which a waiting append continues
    std::vector<std::byte> memory_;  ///< of the blocks
    ListModeSeries file_;            ///< used by the writing thread alone until finish()

    mutable net::Mutex mutex_;
    std::condition_variable work_;
    std::condition_variable room_;
    std::vector<std::byte*> free_ PETACQ_GUARDED_BY(mutex_);
    std::deque<Block> queue_ PETACQ_GUARDED_BY(mutex_);
    Block current_ PETACQ_GUARDED_BY(mutex_);  ///< being filled; data is null when there is none
    Clock::time_point current_since_ PETACQ_GUARDED_BY(mutex_);
    Clock::time_point synced_ PETACQ_GUARDED_BY(mutex_);
    Clock::time_point checked_ PETACQ_GUARDED_BY(mutex_);
    bool dirty_ PETACQ_GUARDED_BY(mutex_) = false;  ///< something was written since the last sync
    bool stopping_ PETACQ_GUARDED_BY(mutex_) = false;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    ListModeCounts counts_ PETACQ_GUARDED_BY(mutex_);
    Clock::time_point call_started_ PETACQ_GUARDED_BY(mutex_);
    std::deque<Mark> marks_ PETACQ_GUARDED_BY(mutex_);  ///< ordered by `appended`
    RecentLatency latency_ PETACQ_GUARDED_BY(mutex_);

    std::thread thread_;
};

}  // namespace petacq::daemon
