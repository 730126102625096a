// What became of a frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/coverage/intervals.hpp"
#include "tools/petlm/reconstruction/image/report.hpp"

namespace petacq::frames {

struct FrameReport {
    bool data = false;        ///< some arrived; otherwise the voxels have no value
    std::string why_none;     ///< a clause
    daemon::Intervals times;  ///< whose records the frame has
    double recorded_s = 0;    ///< in which records were taken, at a position if the bed moved
    std::uint64_t prompts = 0;
    double share_of_pairs = 1;  ///< of the pairs of crystals, that fitted into memory
    image::Report report;
    std::vector<image::PositionReport> positions;  ///< that the frame has, if the bed moved
    std::vector<std::string> sentences;
};

}  // namespace petacq::frames
