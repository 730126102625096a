// Smoothing of an image.
#pragma once

#include <vector>

#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// A Gaussian of that full width at half maximum (mm) along each axis; near the edges the average is over
/// what lies inside. 0: does nothing.
void smooth(std::vector<float>& image, const Grid& grid, double fwhm_mm, gpu::WorkerPool& pool);

}  // namespace petacq::image
