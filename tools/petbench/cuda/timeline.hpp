// How the time of the slices of the CUDA pipeline is spent, and that of the bus.
#pragma once

#include <vector>

#include "gpu/cuda/timeline.hpp"

namespace petacq::bench {

/// Timelines of the slices of each pass, in order.
using Passes = std::vector<std::vector<gpu::SliceTimeline>>;

/// Prints the mean and the largest time of each step.
void print_timeline(const Passes& passes);

/// Prints what the bus did, as shares of the time from the first submission of a pass to its last result,
/// which add up to 100 %. `up_rate`: bytes per second from host to device when nothing else is on the bus.
void print_bus_account(const Passes& passes, double up_rate);

}  // namespace petacq::bench
