#include "daemon/tracking/time_guard.hpp"

namespace petacq::daemon {

TimeGuard::Step TimeGuard::elsewhere(const DatagramTimes& d, std::uint64_t& believed) {
    if (!proven_ && unproven_ < UINT32_MAX) ++unproven_;
    const bool agrees = row_ > 0 && (within(d.last, row_time_) || within(d.first, row_time_));
    if (agrees) {
        believed = within(d.last, row_time_) ? d.last : d.first;
    } else {
        // If the two are far apart, one of them is wild: more often the larger.
        believed = within(d.first, d.last) ? d.last : std::min(d.first, d.last);
    }
    const std::uint64_t other = believed == d.last ? d.first : d.last;
    const std::uint64_t low = within(other, believed) ? std::min(other, believed) : believed;
    if (!agrees) {
        row_ = 1;
        row_progress_ = low;
    } else {
        ++row_;
        // The first datagram may have a single frame, wild by less than max_jump.
        row_progress_ = row_ == 2 ? std::min(row_progress_, low) : std::max(row_progress_, candidate(d, low));
    }
    row_time_ = believed;
    previous_ = low;
    behind_ = 0;
    if (row_ < confirmations_) return Step::unconfirmed;
    const bool moved = proven_;
    proven_ = true;
    unproven_ = 0;
    row_ = 0;
    progress_ = row_progress_;
    return moved ? Step::moved : Step::proven;
}

}  // namespace petacq::daemon
