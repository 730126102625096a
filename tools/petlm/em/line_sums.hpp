// The sensitivity of an image, as the sum over the lines of all pairs of crystals.
#pragma once

#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/corrections/line_factors.hpp"
#include "tools/petlm/em/lines.hpp"
#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// Whether all lines can be summed in seconds: for scanners of up to some thousand crystals.
bool few_lines(const config::Geometry& geometry, const Grid& grid);

/// [voxel] The sum over all good pairs of weight * chance * length in the voxel (lines.hpp): exactly what EM
/// divides by. sensitivity() is the same for crystals without number. The result does not depend on the
/// number of threads. Needs a few copies of the image.
std::vector<float> sum_of_lines(const corrections::LineFactors& factors, const config::Scanner& scanner,
                                const Grid& grid, const gpu::PairRule& rule, const OfPair& chance,
                                gpu::WorkerPool& pool);

}  // namespace petacq::image
