// The sensitivity of an image, as the sum over the lines of all pairs of crystals.
#pragma once

#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// Whether all lines, at all angles, can be summed in seconds: for scanners of up to some thousand crystals
/// that stand still.
bool few_lines(const corrections::LineFactors& factors, const Grid& grid);

/// [voxel] The sum over all good pairs at all angles of weight * chance * length in the voxel (lines.hpp):
/// exactly what EM divides by. `chance` takes numbers (corrections::LineFactors). The result does not depend
/// on the number of threads. Needs a few copies of the image.
std::vector<float> sum_of_lines(const corrections::LineFactors& factors, const Grid& grid,
                                const gpu::PairRule& rule, const OfPair& chance, net::WorkerPool& pool);

/// The same from an even sample of the lines, for scanners of any size and arrangement: so many that 4000 or
/// more pass through a voxel, a noise of about 2 %, unless there are fewer lines in all.
std::vector<float> sampled_sum_of_lines(const corrections::LineFactors& factors, const Grid& grid,
                                        const gpu::PairRule& rule, const OfPair& chance,
                                        net::WorkerPool& pool);

/// The same without `chance`, for rings of any size, whose modules and crystals are all alike: the lines of
/// one crystal of each 16 (8 or 4 if the modules do not go round in fours), and their mirror images. Of large
/// scanners a hash chooses an even sample, so that 16,000 lines or more pass through a voxel: a noise of less
/// than 1 %. The grid is as wide as high.
std::vector<float> even_sum_of_lines(const corrections::LineFactors& factors, const config::Scanner& scanner,
                                     const Grid& grid, const gpu::PairRule& rule, net::WorkerPool& pool);

}  // namespace petacq::image
