// The image of a report: the one that `petlm image` makes of the run without calibration, in coarser voxels.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/plot/resolution.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::petlm {

struct RunImage {
    image::Grid grid;
    std::vector<float> values;           ///< decays per voxel
    std::size_t brightest = 0;           ///< the voxel that the cuts pass through
    std::vector<std::string> sentences;  ///< how it was made, and what it lacks
    SeenSource source;
};

struct MaybeImage {
    std::optional<RunImage> image;
    std::string why_not;
};

/// Reads the coincidences of `target` once. No image, and why, where one cannot be made; throws BadInput for
/// damaged records as ExportSource does.
MaybeImage image_of_run(const std::filesystem::path& target,
                        const std::optional<std::filesystem::path>& scanner, std::optional<double> depth_mm);

}  // namespace petacq::petlm
