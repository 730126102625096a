// Takes records from one thread and writes them to a list-mode file in a thread of its own, so that a slow
// disk is seen in a queue and not in the producer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "daemon/latency.hpp"
#include "daemon/listmode_file.hpp"
#include "daemon/listmode_format.hpp"
#include "daemon/listmode_series.hpp"
#include "gpu/types.hpp"

namespace petacq::daemon {

struct ListModeOptions {
    RecordKind kind = RecordKind::coincidences;
    std::uint32_t block_bytes = 1U << 20;    ///< a multiple of 64
    std::uint32_t sync_interval_ms = 1'000;  ///< records are on the disk about this long after they came
    std::uint32_t queue_blocks = 64;         ///< block buffers, at least 2; memory: times block_bytes
    nlohmann::json description = nlohmann::json::object();  ///< goes into the file header
    SplitOptions split;                                     ///< into files
    FileCalls calls;                                        ///< for tests
};

/// Records, unless it says otherwise. appended = written + write_failed + those still in hand.
struct ListModeCounts {
    std::uint64_t appended = 0;
    std::uint64_t written = 0;       ///< handed to the system in whole blocks
    std::uint64_t write_failed = 0;  ///< could not be written, or came after that
    std::uint64_t bytes = 0;         ///< size of the file, or of all of a series
    std::uint64_t blocks = 0;
    std::uint64_t stalls = 0;        ///< appends that had to wait for a free buffer
    std::uint64_t queue_blocks = 0;  ///< blocks that wait for the disk now
    std::uint64_t queue_high_water = 0;
    std::uint64_t calls = 0;  ///< writes and syncs that have returned
    bool in_call = false;     ///< one has not
    double busy_s = 0;        ///< spent in them
};

/// append() and finish() from one thread; the rest from any thread.
class ListModeWriter {
  public:
    /// Makes the file, or the first of a series, and starts the thread. Throws as ListModeFile's constructor
    /// does, and std::invalid_argument for options that cannot be.
    ListModeWriter(const std::filesystem::path& path, ListModeOptions options);
    /// As finish(), its counts thrown away.
    ~ListModeWriter();
    ListModeWriter(const ListModeWriter&) = delete;
    ListModeWriter& operator=(const ListModeWriter&) = delete;

    /// Copies the records, which come in their order. Waits when every buffer waits for the disk. After a
    /// failure the records are counted as write_failed and thrown away. Throws std::logic_error for records
    /// of the other kind and after finish().
    void append(std::span<const gpu::Coincidence> records);
    void append(std::span<const gpu::Single> records);

    /// Follows data that arrived at these times of the steady clock (ns), and of which everything has been
    /// appended by now: how long it took is known when all that is written. Not more than max_marks wait at a
    /// time; more are not followed. With append().
    void mark(std::span<const std::int64_t> arrivals);
    static constexpr std::size_t max_marks = 1024;

    /// Writes what is left, the index, syncs and closes; waits for all that. The counts are final:
    /// appended = written + write_failed. Further calls give the same counts.
    ListModeCounts finish();

    [[nodiscard]] ListModeCounts counts() const;
    /// The files, in order. After finish().
    [[nodiscard]] std::vector<ListModePart> parts() const { return file_.parts(); }
    /// Of the marks, lately: from arrival until write(2) had returned.
    [[nodiscard]] LatencySummary latency() const;
    /// What went wrong with the file, in words; empty while all is well. Once set it stays: the file is
    /// closed with everything that was written before.
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
    struct Release {
        void operator()(std::byte* memory) const;
    };

    void append_bytes(RecordKind kind, std::span<const std::byte> bytes);
    [[nodiscard]] bool wait_for_block(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] std::size_t enough_free() const { return (queue_.size() + 3) / 4; }
    void queue_current();
    void begin_call();
    void end_call();
    void settle_marks();
    void run();
    void write_oldest(std::unique_lock<std::mutex>& lock);
    void sync(std::unique_lock<std::mutex>& lock);
    void wait_for_work(std::unique_lock<std::mutex>& lock);
    void fail(std::unique_lock<std::mutex>& lock, const std::string& why);
    [[nodiscard]] std::uint64_t records_in(const Block& block) const;

    const RecordKind kind_;
    const std::size_t record_bytes_;
    const std::size_t block_bytes_;
    const std::chrono::milliseconds interval_;
    std::unique_ptr<std::byte, Release> memory_;
    ListModeSeries file_;  ///< the writing thread's alone

    mutable std::mutex mutex_;  ///< guards all that follows up to the thread
    std::condition_variable work_;
    std::condition_variable room_;
    std::vector<std::byte*> free_;
    std::vector<Block> queue_;  ///< ring of as many places as there are buffers
    std::size_t queue_head_ = 0;
    Block current_;  ///< being filled; data is null when there is none
    Clock::time_point current_since_;
    Clock::time_point synced_;
    bool dirty_ = false;  ///< something was written since
    bool stopping_ = false;
    std::string failure_;
    ListModeCounts counts_;
    Clock::time_point call_began_;
    std::vector<Mark> marks_;  ///< ring, in the order of `appended`
    std::size_t marks_head_ = 0;
    std::size_t marks_count_ = 0;
    RecentLatency latency_;

    std::thread thread_;
};

}  // namespace petacq::daemon
