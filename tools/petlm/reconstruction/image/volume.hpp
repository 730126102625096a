// The grid of an image as NIfTI places it.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tools/nifti/nifti.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// Without values.
inline nifti::Volume volume_of(const Grid& grid) {
    const double mm = grid.voxel_mm;
    return {grid.n,
            {{{mm, 0, 0}, {0, mm, 0}, {0, 0, mm}}},
            {grid.centre(0, 0), grid.centre(1, 0), grid.centre(2, 0)},
            {}};
}

/// Writes the partial file of `file` (petlm::Outputs). Throws as petlm::OutputFile does.
void write_volume(const std::filesystem::path& file, const Grid& grid, std::span<const float> values,
                  const std::string& description);

}  // namespace petacq::image
