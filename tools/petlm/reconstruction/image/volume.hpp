// The grid of an image as NIfTI places it.
#pragma once

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

}  // namespace petacq::image
