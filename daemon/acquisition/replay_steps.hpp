// Where a replay cuts slices in addition to those that are full or old.
#pragma once

#include <cstdint>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

/// Rows of the ledger over time end only at these cuts, so that they do not depend on the length of the
/// slices. No thread-safety: a value.
class ReplaySteps {
  public:
    ReplaySteps() = default;
    /// `second`: ticks of detector time.
    explicit ReplaySteps(std::uint64_t second) : second_(second) {}

    /// Whether a slice must end with data up to `newest` (ticks): about four times per second of detector
    /// time.
    bool ends_step(std::uint64_t newest) {
        if (!would_end(newest)) return false;
        next_ = add_or_max(newest, second_ / 4);
        return true;
    }
    /// The same, without ending it.
    [[nodiscard]] bool would_end(std::uint64_t newest) const {
        // One wild time must not put the next step out of reach.
        return newest >= next_ || add_or_max(newest, 2 * second_) < next_;
    }

  private:
    std::uint64_t second_ = 0;
    std::uint64_t next_ = 0;
};

}  // namespace petacq::daemon
