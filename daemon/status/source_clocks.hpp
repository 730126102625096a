// Whether the times that boards send keep pace with the clock of the host. Times in another unit, or times
// that stand still, are consistent in themselves: only the host tells.
//
// A source is judged by stretches of a second or more in which it has sent often, by the arrival of its
// latest datagram: a host that was held up changes nothing. Its clock is off if it is in two stretches
// running: a clock that steps once is none.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

class SourceClocks {
  public:
    struct Off {
        std::uint32_t source = 0;  ///< its position
        double pace = 0;           ///< detector time in a second of the host; below 0: it goes back
    };

    /// Once a second.
    void observe(const std::vector<SourceStatus>& sources, double tick_ps);
    /// The sources whose clock is off now.
    [[nodiscard]] const std::vector<Off>& off() const { return off_; }

  private:
    struct Watch {
        SourceStatus from;
        int slow = 0;  ///< stretches running
        int fast = 0;
        double pace = 1;
    };
    static void judge(Watch& watch, const SourceStatus& now, double tick_ps);

    std::vector<Watch> watches_;
    std::vector<Off> off_;
};

}  // namespace petacq::daemon
