// The probability that a decay in a voxel makes a pair that the run would have recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// Where a photon enters a crystal.
struct Entrance {
    std::uint32_t crystal;
    config::Vector3 at;  ///< mm
};
/// The chance that a pair which enters two crystals is found. Called by several threads.
using FactorOfRay = std::function<double(const Entrance& a, const Entrance& b)>;

/// [voxel] The share of directions in which both photons meet the front face of a crystal, and the two
/// crystals make a good pair: the sum over all good pairs of length in the voxel times weight (lines.hpp).
/// It is computed from a fixed set of 4096 places and directions at each of some thousand nodes and
/// interpolated, which is smoother than a sample of the pairs. The result does not depend on the number of
/// threads. Without `factor` crystals detect every photon, and nothing attenuates. `symmetric`: the factor is
/// that of the mirror images of the pair, too, which saves most of the time.
std::vector<float> sensitivity(const config::Scanner& scanner, const gpu::PairRule& rule, const Grid& grid,
                               gpu::WorkerPool& pool, const FactorOfRay& factor = {}, bool symmetric = false);

}  // namespace petacq::image
