// petlm frames: an image for each interval of a run, or for each phase of a breath or heart beat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/image/image.hpp"
#include "tools/petlm/records/gating/phases.hpp"

namespace petacq::petlm {

/// Either a schedule or gates. What an image has of options, each frame has.
struct FrameOptions : ImageOptions {
    std::optional<std::string> schedule;  ///< "10x10s,5x60s" or "auto"
    std::optional<std::uint32_t> gates;   ///< number of phases
    std::optional<unsigned> channel;      ///< of the triggers of the gates
    std::optional<double> shortest_s;     ///< of their cycles
    std::optional<double> longest_s;
    /// Seconds from the start of the run; the frames of a schedule begin there.
    std::optional<double> injection_s;
    std::vector<std::string> regions;           ///< name=sphere:x,y,z,r or name=mask.nii
    std::optional<std::filesystem::path> bids;  ///< keys for the sidecar that the run does not know
};
/// Reads the records once. Makes frames.nii with its sidecar frames.json and, of regions, curves.csv and
/// curves.png. Returns an exit status. Throws as image() does.
int frames(const FrameOptions& options);

}  // namespace petacq::petlm
