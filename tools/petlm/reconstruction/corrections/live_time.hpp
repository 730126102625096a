// What a run found, moment by moment.
#pragma once

#include <functional>

#include "gpu/tick_range.hpp"

namespace petacq::petlm {

/// A time, and the share of the true pairs of the whole scanner in it that was found: neither lost nor missed
/// in dead time.
struct LiveTime {
    gpu::TickRange time;
    double live = 1;
};

/// How many decays happen in a time, in any unit.
using DecaysIn = std::function<double(const gpu::TickRange&)>;

}  // namespace petacq::petlm
