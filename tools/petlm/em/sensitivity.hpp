// The probability that a decay in a voxel makes a pair that the run would have recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/corrections/line_factors.hpp"
#include "tools/petlm/projector/grid.hpp"

namespace petacq::image {

/// Where a photon meets a crystal, at the depth of the lines.
struct Entrance {
    std::uint32_t crystal;
    config::Vector3 at;  ///< mm
};
/// The chance that a pair which enters two crystals is found. Called by several threads.
using FactorOfRay = std::function<double(const Entrance& a, const Entrance& b)>;

/// Rays of a node.
inline constexpr std::size_t sensitivity_rays = 4096;

/// [voxel] The share of directions in which both photons meet the front face of a crystal, and the two
/// crystals make a good pair: the sum over all good pairs of length in the voxel times weight (lines.hpp).
/// It is computed from a fixed set of places and directions, `rays` of them at each of some thousand nodes
/// and interpolated, which is smoother than a sample of the pairs. The result does not depend on the number
/// of threads. The rays meet crystals at the depth of the lines: rays that met the front faces would join
/// other crystals than lines between points behind them, and there would be rings in the image. Without
/// `chance` crystals detect every photon, and nothing attenuates.
std::vector<float> sensitivity(const corrections::LineFactors& lines, const config::Scanner& scanner,
                               const gpu::PairRule& rule, const Grid& grid, gpu::WorkerPool& pool,
                               const FactorOfRay& chance = {}, std::size_t rays = sensitivity_rays);

}  // namespace petacq::image
