// Where the rows of the ledger over time end.
#pragma once

#include <cstdint>
#include <optional>

namespace petacq::daemon {

/// Rows follow detector time: a row ends with the first watermark that has passed a multiple of the row
/// length, counted from the start of the run, or from its first frame if that comes later. Times are ticks.
/// No thread-safety: a value.
class RowCadence {
  public:
    RowCadence() = default;
    /// `row`: length of a row; 0: only the end of the run ends one.
    RowCadence(std::uint64_t run_start, std::uint64_t row) : run_start_(run_start), row_(row) {}

    /// Whether a row ends at this watermark; if so, the next one starts there. `first_frame`: the earliest so
    /// far, UINT64_MAX before the first one.
    bool row_ends(std::uint64_t watermark, std::uint64_t first_frame);
    /// Where the first row starts: settled when a row ends for the first time, at `end`, and not after it. A
    /// run may start long before its first frame.
    std::uint64_t first_row(std::uint64_t end, std::uint64_t first_frame);
    /// Detector time starts again at 0, and the rows with it.
    void restart() { *this = RowCadence(0, row_); }

  private:
    std::uint64_t run_start_ = 0;
    std::uint64_t row_ = 0;
    std::optional<std::uint64_t> first_row_;
    std::uint64_t due_ = 0;  ///< once first_row_ is settled
};

}  // namespace petacq::daemon
