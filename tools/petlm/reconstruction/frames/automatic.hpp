// Frames that follow from the rates of a run.
#pragma once

#include <vector>

#include "gpu/tick_range.hpp"
#include "tools/petlm/reconstruction/frames/plan.hpp"

namespace petacq::frames {

/// The trues of a second.
struct Second {
    gpu::TickRange times;
    double trues = 0;
};

/// Frames of whole seconds. The first begins with the second of the injection. Four each are 5, 10, 20, ...
/// 320 s long, the rest 600 s; a frame is longer if it would have less than a thousandth of the trues. What
/// is left at the end is a frame, or part of the last one if it is shorter than half of its length.
/// `first`: from which tick on. REQUIRES: seconds in order of time.
std::vector<gpu::TickRange> growing_frames(const std::vector<Second>& seconds, std::uint64_t first,
                                           double tick_ps);
/// The start of the first second with more than a tenth of the trues of the second with most. Absent: that
/// is the first one, so that the injection was before, or there are no trues.
std::optional<std::uint64_t> injection_in(const std::vector<Second>& seconds);

/// The frames of a source by its seconds; sets the injection of the plan where it finds it, and says what it
/// did. Throws UsageError if the source has no seconds that can be used.
std::vector<gpu::TickRange> automatic_frames(const petlm::ExportSource& source, FramePlan& plan);

}  // namespace petacq::frames
