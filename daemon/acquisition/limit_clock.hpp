// The clock of the time limits of a run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace petacq::daemon {

/// Goes on with the turns of the acquisition, by a tenth of a second per turn at most: a process that was
/// stopped does not wake up behind its deadlines. No thread-safety.
class LimitClock {
  public:
    using Clock = std::chrono::steady_clock;

    /// Once a turn. `host_ns`: up to where everything that arrived has been read.
    void turn(std::int64_t host_ns) {
        const Clock::time_point at = Clock::now();
        now_ += std::min<Clock::duration>(at - turned_at_, std::chrono::milliseconds(100));
        turned_at_ = at;
        if (host_ns == host_ns_) return;
        host_ns_ = host_ns;
        moved_at_ = now_;
    }
    [[nodiscard]] Clock::time_point now() const { return now_; }
    [[nodiscard]] std::int64_t host_ns() const { return host_ns_; }
    /// How long host time has not advanced: a receiver has stopped.
    [[nodiscard]] Clock::duration standing() const { return now_ - moved_at_; }

  private:
    Clock::time_point now_ = Clock::now();
    Clock::time_point turned_at_ = now_;
    Clock::time_point moved_at_ = now_;
    std::int64_t host_ns_ = 0;
};

}  // namespace petacq::daemon
