#include "daemon/run/row_cadence.hpp"

#include <algorithm>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

bool RowCadence::row_ends(std::uint64_t watermark, std::uint64_t first_frame) {
    if (row_ == 0) return false;
    const std::uint64_t due = first_row_ ? due_ : add_or_max(std::max(run_start_, first_frame), row_);
    if (watermark < due) return false;
    const std::uint64_t beyond = (watermark - first_row(watermark, first_frame)) % row_;
    due_ = add_or_max(watermark - beyond, row_);
    return true;
}

std::uint64_t RowCadence::first_row(std::uint64_t end, std::uint64_t first_frame) {
    if (!first_row_) first_row_ = std::clamp(first_frame, run_start_, std::max(run_start_, end));
    return *first_row_;
}

}  // namespace petacq::daemon
