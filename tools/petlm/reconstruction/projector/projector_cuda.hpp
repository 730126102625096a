// The projector on a GPU.
#pragma once

#include <memory>
#include <vector>

#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// A projector on the first device: each thread follows a row through the voxels, twice. What it adds to a
/// voxel has a fixed point, so that sums are the same in any order. Throws as Projector does.
std::unique_ptr<Projector> make_cuda_projector(const Grid& grid, const config::LineGeometry& geometry);

}  // namespace petacq::image
