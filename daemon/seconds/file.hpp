// Writes the seconds of a run to its file, in a thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "config/scanner/geometry.hpp"
#include "daemon/listmode/file.hpp"
#include "daemon/listmode/series.hpp"
#include "daemon/seconds/record.hpp"
#include "daemon/seconds/second.hpp"
#include "daemon/system/disk_thread.hpp"
#include "daemon/system/file.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// appended = written + write_failed + those that wait. Without those that were discarded.
struct SecondsCounts {
    std::uint64_t appended = 0;
    std::uint64_t written = 0;       ///< passed to the kernel
    std::uint64_t write_failed = 0;  ///< could not be written, or were appended after a failure
    std::uint64_t bytes = 0;         ///< size of the file
    std::uint64_t calls = 0;         ///< writes and syncs that have returned
    bool waiting = false;            ///< a write or sync is under way, or seconds wait
    double busy_s = 0;               ///< time spent in writes and syncs
};

/// A list-mode file of seconds: each second is a block of one record. One thread calls append() and finish();
/// any thread the rest.
class SecondsFile {
  public:
    /// Creates the file, and starts the thread. `gammas`: as SecondRecord. `description` goes into the
    /// header, with the fields of the record; `closing` makes the closing description (empty: there is none).
    /// Throws as ListModeFile's constructor does; leaves nothing behind then.
    SecondsFile(const std::filesystem::path& path, const config::Geometry& geometry,
                nlohmann::json description, config::Compression compression,
                std::chrono::milliseconds sync_interval, Closing closing = {}, bool gammas = false);
    /// Finishes the file.
    ~SecondsFile();
    SecondsFile(const SecondsFile&) = delete;
    SecondsFile& operator=(const SecondsFile&) = delete;

    /// Takes a second, which starts after those before. Waits while `max_waiting` wait for the disk. After a
    /// failure they are discarded and counted as write_failed. Throws std::logic_error after finish().
    void append(const Second& second);
    static constexpr std::size_t max_waiting = 8;
    /// Discards all seconds so far, also those in the file: the next one may start before them. One thread
    /// calls it and append().
    void start_again();

    /// Writes what waits and the index, syncs and closes. Returns the final counts. Further calls return the
    /// same.
    SecondsCounts finish();

    [[nodiscard]] SecondsCounts counts() const;
    /// Why writing failed; empty while all is well. After a failure the file stays closed, with everything
    /// that was written before.
    [[nodiscard]] std::string failure() const;
    /// The file as run.json describes it. Only after finish().
    [[nodiscard]] ListModePart part() const { return part_; }
    /// Only after finish().
    [[nodiscard]] const FileIdentity& identity() const { return file_->identity(); }

  private:
    using Bytes = std::vector<std::byte>;
    void write(Bytes& record);
    void remove_seconds();
    void drop(const Bytes& record);
    void sync();
    void close();
    std::string fail(const std::string& why);
    void count_bytes();

    const SecondRecord record_;
    const Closing closing_;
    std::unique_ptr<ListModeFile> file_;  ///< used by the thread alone until finish()
    ListModePart part_;                   ///< likewise
    moodycamel::ConcurrentQueue<Bytes> spare_;
    mutable net::Mutex mutex_;
    SecondsCounts counts_ PETACQ_GUARDED_BY(mutex_);  ///< without those of the thread
    std::optional<DiskThread<Bytes>> thread_;
};

}  // namespace petacq::daemon
