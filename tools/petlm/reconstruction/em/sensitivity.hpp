// The probability that a decay in a voxel makes a pair that the run would have recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// Where a photon meets a crystal, at the typical depth of the lines.
struct Entrance {
    std::uint32_t crystal;
    config::Vector3 at;  ///< mm
};
/// The chance that a pair which enters two crystals is found. Called by several threads.
using FactorOfRay = std::function<double(const Entrance& a, const Entrance& b)>;

/// [voxel] What EM divides by: the sum over all good pairs of length in the voxel times weight (lines.hpp)
/// times the chance that the pair is found. `chance` and `of_ray` say the same of a pair, and of a ray
/// between two crystals; both are empty, for 1, or neither is. Of scanners of up to some thousand crystals
/// the sum has all lines; of other rings it comes from sensitivity(), of other arrangements from
/// sampled_sum_of_lines().
std::vector<float> sensitivity_of(const corrections::LineFactors& lines, const config::Scanner& scanner,
                                  const gpu::PairRule& rule, const Grid& grid, const OfPair& chance,
                                  const FactorOfRay& of_ray, net::WorkerPool& pool);

/// Of a ring. [voxel] The sum over all good pairs of length in the voxel times weight (lines.hpp) times
/// chance, for scanners with too many lines to sum them all (line_sums.hpp): the sum without the chance
/// (even_sum_of_lines), times the mean chance, which varies slowly. This comes from a fixed set of 1024
/// places and directions at each of some thousand nodes, and is interpolated. The rays meet crystals at the
/// typical depth of the lines. The result does not depend on the number of threads. Without `chance` crystals
/// detect every photon, and nothing attenuates.
std::vector<float> sensitivity(const corrections::LineFactors& lines, const config::Scanner& scanner,
                               const gpu::PairRule& rule, const Grid& grid, net::WorkerPool& pool,
                               const FactorOfRay& chance = {});

}  // namespace petacq::image
