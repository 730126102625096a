// The ledger of a run over detector time: ledger.csv beside the list-mode, about one row per second.
//
// A row holds the growth of each counter while detector time (the watermark) went from one row to the next.
// The rows of a run add up to its ledger. docs/reference/ledger.md names the columns.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "daemon/run/ledger.hpp"
#include "daemon/run/row_cadence.hpp"
#include "daemon/system/disk_thread.hpp"
#include "daemon/system/file.hpp"
#include "net/base/counter.hpp"

namespace petacq::daemon {

/// How far the file has got.
struct LedgerSeriesStatus {
    std::uint64_t rows = 0;    ///< written
    std::uint64_t synced = 0;  ///< of these, the rows that survive a power cut
    std::string failure;       ///< why the file ended early; empty: it did not
};

/// One thread makes the rows, another one writes them: a slow disk leads to fewer and longer rows, but delays
/// no other thread.
class LedgerSeries {
  public:
    /// Creates the file; throws std::system_error naming it. Rows survive a power cut about `sync_interval`
    /// after they were written.
    explicit LedgerSeries(const std::filesystem::path& file,
                          std::chrono::milliseconds sync_interval = std::chrono::seconds(5));
    ~LedgerSeries() = default;
    LedgerSeries(const LedgerSeries&) = delete;
    LedgerSeries& operator=(const LedgerSeries&) = delete;

    // The calls of one thread, in this order. Ledgers are totals since the same moment.

    /// The run starts at `ticks` with these totals. Rows are about `row` ticks long; 0: one row in all.
    void start(std::uint64_t ticks, std::uint64_t row, const Ledger& total);
    /// Whether a row ends at this watermark: add() must follow, in the order of the watermarks.
    /// `first_frame`: the earliest time received so far, UINT64_MAX before the first frame.
    bool row_ends(std::uint64_t watermark, std::uint64_t first_frame);
    /// Adds a row up to `ticks`. While many wait for the disk, the next row covers this one, too.
    void add(std::uint64_t ticks, const Ledger& total);
    /// Detector time starts again at 0: the next row starts at the first frame.
    void time_restarted() {
        cadence_.restart();
        ticks_.reset();
    }
    /// Adds the last row: the run has stopped at `ticks`.
    void add_last(std::uint64_t ticks, std::uint64_t first_frame, const Ledger& total);

    /// Any thread, after the last row: writes the rows that wait and closes the file. Idempotent.
    void finish() { thread_.finish(); }
    /// Any thread.
    [[nodiscard]] LedgerSeriesStatus status() const;
    /// After finish().
    [[nodiscard]] const FileIdentity& identity() const { return file_.identity(); }

  private:
    void start_rows(std::uint64_t end, std::uint64_t first_frame);
    void append(std::uint64_t ticks, const Ledger& total);
    [[nodiscard]] DiskWork<std::string> work();

    File file_;  ///< used by the writing thread alone
    RowCadence cadence_;
    std::optional<std::uint64_t> ticks_;  ///< where the latest row ended, or the first one starts
    Ledger start_;                        ///< the totals when the run started
    Ledger run_;                          ///< the ledger of the run as of ticks_
    net::Counter lines_;                  ///< written, with that of the names
    net::Counter synced_;                 ///< of these
    DiskThread<std::string> thread_;      ///< writes the lines
};

}  // namespace petacq::daemon
