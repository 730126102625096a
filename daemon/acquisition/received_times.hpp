// The range of detector times received since the detector was last quiet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "daemon/tracking/source_tracker.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

/// Times are raw ticks. Only times that the verdict on their datagram believes count. No thread-safety.
class ReceivedTimes {
  public:
    /// Adds an accepted datagram with frames. Returns the time of its last frame if that is believed.
    std::optional<std::uint64_t> add(const net::Datagram& datagram, const Verdict& verdict) {
        const auto believed = [&](std::uint64_t time) {
            return time >= verdict.time_low && time <= verdict.time_high;
        };
        if (believed(datagram.first_time)) earliest_ = std::min(earliest_, datagram.first_time);
        if (!believed(datagram.last_time)) return std::nullopt;
        newest_ = std::max(newest_, datagram.last_time);
        return datagram.last_time;
    }
    void clear() { *this = {}; }

    /// UINT64_MAX before the first frame. A run of fixed duration counts from here.
    [[nodiscard]] std::uint64_t earliest() const { return earliest_; }
    /// 0 before the first frame.
    [[nodiscard]] std::uint64_t newest() const { return newest_; }

  private:
    std::uint64_t earliest_ = UINT64_MAX;
    std::uint64_t newest_ = 0;
};

}  // namespace petacq::daemon
