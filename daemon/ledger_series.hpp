// The ledger of a run over detector time: ledger.csv beside the list-mode, about one row per second.
//
// A row holds what each counter grew by while detector time (the watermark) went from one row to the next;
// the rows of a run add up to its ledger. docs/ledger.md names the columns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/ledger.hpp"

namespace petacq::daemon {

/// What has become of the file.
struct LedgerSeriesStatus {
    std::uint64_t rows = 0;    ///< given to the disk
    std::uint64_t synced = 0;  ///< of these, what a power cut leaves
    std::string failure;       ///< why it ended early; empty while all is well
};

/// Rows are made by one thread and written by another: a slow disk makes fewer and longer rows, and holds
/// nobody up.
class LedgerSeries {
  public:
    /// Makes the file; throws std::system_error naming it. Rows are on the disk, power cut or not, about
    /// `sync_interval` after they were written.
    explicit LedgerSeries(const std::filesystem::path& file,
                          std::chrono::milliseconds sync_interval = std::chrono::seconds(5));
    ~LedgerSeries();
    LedgerSeries(const LedgerSeries&) = delete;
    LedgerSeries& operator=(const LedgerSeries&) = delete;

    // By one thread, in this order. Ledgers are totals of one and the same beginning.

    /// Rows count from here, ticks and totals.
    void begin(std::uint64_t ticks, const Ledger& total);
    /// A row up to `ticks`, or none while many wait for the disk: the next one then reaches back further.
    void add(std::uint64_t ticks, const Ledger& total);
    /// The last row.
    void end(std::uint64_t ticks, const Ledger& total);

    /// After that, any thread: writes what waits and closes the file. Idempotent.
    void finish();
    /// Any thread.
    [[nodiscard]] LedgerSeriesStatus status() const;

  private:
    void append(std::uint64_t ticks, const Ledger& total);
    void run();
    void write(std::string_view text);
    void sync();
    void fail(int error);

    const std::filesystem::path path_;
    const std::chrono::milliseconds sync_interval_;
    int file_ = -1;
    std::uint64_t ticks_ = 0;  ///< up to where there are rows
    Ledger total_;             ///< as of then

    mutable std::mutex mutex_;  ///< guards what follows
    std::condition_variable changed_;
    std::string waiting_;
    std::uint64_t waiting_rows_ = 0;
    bool finishing_ = false;
    LedgerSeriesStatus status_;
    std::thread thread_;
};

}  // namespace petacq::daemon
