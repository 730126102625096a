#include "daemon/acquisition/host_clock.hpp"

#include <limits>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

std::int64_t HostClock::host_ns() const {
    if (!live()) return replay_clock_->load(std::memory_order_acquire);
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t HostClock::received_so_far_is_read_ns() const {
    return live() ? host_ns() + receive_delay_ns_ : std::numeric_limits<std::int64_t>::min();
}

bool HostClock::ends_step(std::uint64_t newest) {
    if (live()) return false;
    // One wild time must not put the next step out of reach.
    const bool far_back = add_or_max(newest, 2 * second_) < next_step_;
    if (newest < next_step_ && !far_back) return false;
    next_step_ = add_or_max(newest, second_ / 4);
    return true;
}

}  // namespace petacq::daemon
