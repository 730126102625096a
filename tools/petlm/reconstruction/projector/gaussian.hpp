// Gaussians over images.
#pragma once

#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// Convolves with a Gaussian of that full width at half maximum (mm) along each axis; near the edges only
/// voxels inside the image count. 0 leaves the image unchanged.
void smooth(std::vector<float>& image, const Grid& grid, double fwhm_mm, net::WorkerPool& pool);

/// The same as if the image were 0 outside: what a voxel gives to another is what it gets from it.
void blur(std::vector<float>& image, const Grid& grid, double fwhm_mm, net::WorkerPool& pool);

}  // namespace petacq::image
