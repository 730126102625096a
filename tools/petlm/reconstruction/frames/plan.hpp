// Which times belong to which frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/reconstruction/frames/frames.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::frames {

struct Frame {
    /// From its first tick to its last; of a phase, in all cycles.
    gpu::TickRange span;
    /// That of the records of the frame: of none, if the records have a gap there.
    daemon::Coverage coverage;
};

/// The frames are phases of these cycles.
struct Gates {
    unsigned channel = 0;
    std::size_t cycles = 0;
    std::uint64_t rejected = 0;
    double period_s = 0;  ///< mean
    double spread_s = 0;
};

struct FramePlan {
    std::vector<Frame> list;
    std::optional<Gates> gates;
    std::optional<std::uint64_t> injection;  ///< tick; absent: unknown
    std::vector<std::string> sentences;      ///< how the frames were chosen
};

/// Throws UsageError for a schedule that is none, or that reaches beyond the records by more
/// than a hundredth of a frame; BadInput if it is not
/// known which times the records cover, and as petlm::cycles_of() does.
FramePlan plan_of(const petlm::FrameOptions& options, const petlm::ExportSource& source, double tick_ps);

/// The lengths in ticks of "10x10s,2x1.5min,1h". Throws UsageError.
std::vector<std::uint64_t> lengths_of(const std::string& schedule, double tick_ps);

}  // namespace petacq::frames
