// The probability that a decay in a voxel makes a pair that the run would have recorded.
#pragma once

#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// [voxel] The share of directions in which both photons meet the front face of a crystal, and the two
/// crystals make a good pair: the sum over all good pairs of length in the voxel times weight (lines.hpp).
/// It is computed from a fixed set of 4096 places and directions at each of some thousand nodes and
/// interpolated, which is smoother than a sample of the pairs. The result does not depend on the number of
/// threads. Crystals detect every photon; nothing attenuates.
std::vector<float> sensitivity(const config::Scanner& scanner, const gpu::PairRule& rule, const Grid& grid,
                               gpu::WorkerPool& pool);

}  // namespace petacq::image
