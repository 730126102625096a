// The image that makes the recorded prompts most likely: EM over ordered subsets of the lines.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/image/lines.hpp"
#include "tools/petlm/image/projector.hpp"

namespace petacq::image {

struct EmOptions {
    std::uint32_t iterations = 1;
    /// Of all pairs of crystals, the share that `lines` were taken from (PairCounts::share()).
    double share = 1;
    /// Voxels below this share of the largest sensitivity stay 0.
    double least_sensitivity = 0.02;
    /// Told after every subset: steps done, of so many.
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct EmResult {
    std::vector<float> image;  ///< [voxel] decays, as lines.hpp has them
    /// Of the image before each iteration, and of the last: the sum over the lines of
    /// prompts * log(expected / weight), less that over the voxels of sensitivity * value; a constant apart
    /// from the log-likelihood. With several subsets each one's share is taken when its turn comes, and the
    /// last is not computed.
    std::vector<double> log_likelihood;
    std::uint64_t outside = 0;       ///< prompts on lines that miss all voxels that can have a value
    std::uint64_t nonzeros = 0;      ///< of the system matrix
    std::uint64_t matrix_bytes = 0;  ///< of all pieces of the system matrix together
    bool matrix_kept = false;        ///< all of it fitted; otherwise its pieces were made anew for every use
    double build_s = 0;              ///< making the matrix
    double product_s = 0;            ///< products with it
};

/// x <- x / s * sum over lines of length * prompts / (sum of lengths * x + additive), subset after subset, s
/// of a subset being `sensitivity` divided by the number of subsets. (Shepp and Vardi 1982, Hudson and Larkin
/// 1994; additive term as Politte and Snyder 1991.) It begins with the same value everywhere. With one
/// subset the likelihood does not fall, and the sum of sensitivity times value is the number of prompts less
/// the expected randoms among them. Lines of a subset are projected in pieces that fit the projector's
/// budget; the result does not depend on the pieces. Throws std::invalid_argument when the budget does not
/// hold the smallest piece.
EmResult reconstruct(Projector& projector, const Grid& grid, const std::vector<Point>& points,
                     const Lines& lines, std::span<const float> sensitivity, gpu::WorkerPool& pool,
                     const EmOptions& options);

}  // namespace petacq::image
