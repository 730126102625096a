// The frames of a live benchmark's stream, by source.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petbench/live/stream.hpp"

namespace petacq::bench {

struct SimulatedFrames {
    std::size_t frames = 0;    ///< about as many
    double detector_rate = 0;  ///< frames per second of detector time
    double efficiency = 0;     ///< of the crystals
};

/// Simulates a cylinder of constant activity in the middle of the scanner. Throws std::invalid_argument.
std::vector<SourceFrames> simulated_frames(const config::Scanner& scanner,
                                           const config::Calibration& calibration,
                                           const SimulatedFrames& options);

/// The frames with the usual markers in a capture of sequenced framing. Throws as net::PcapReader does, and
/// std::invalid_argument when there is none.
std::vector<SourceFrames> captured_frames(const std::string& capture, net::FrameVersion version);

}  // namespace petacq::bench
