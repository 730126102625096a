// What the time of slices on the CUDA back-end goes into, in one line per step.
#pragma once

#include <vector>

#include "gpu/cuda/timeline.hpp"

namespace petacq::bench {

/// Lines of one pass after the other, slices in order; prints mean and largest of each step.
void print_timeline(const std::vector<std::vector<gpu::SliceTimeline>>& passes);

}  // namespace petacq::bench
