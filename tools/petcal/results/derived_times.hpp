// Time offsets that were derived, and how well they fit.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petcal/estimate/pairs/time_offsets.hpp"

namespace petacq::petcal {

struct DerivedTimes {
    estimate::TimeOffsets offsets;
    std::uint64_t prompts = 0;  ///< read; no more than are of use
    std::uint64_t missed = 0;   ///< of these, their line misses the source
    double tick_ps = 0;
    /// Of some pairs: time difference less what the path difference makes, before and after.
    std::vector<double> before_ps;
    std::vector<double> after_ps;
};

}  // namespace petacq::petcal
