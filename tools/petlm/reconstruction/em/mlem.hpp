// The image that makes the recorded prompts most likely, by EM over ordered subsets of the lines.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

struct EmOptions {
    std::uint32_t iterations = 1;
    /// After the subsets, one more step with the lines of all of them. Without it, the image has the noise of
    /// the last subset, of which others know nothing: in the sum over a region up to the root of their number
    /// times that of all counts.
    bool end_with_all_lines = false;
    /// The share of all pairs of crystals that `lines` represent (PairCounts::share()).
    double share = 1;
    /// Voxels below this share of the largest sensitivity stay 0.
    double min_sensitivity = 0.02;
    /// What the scanner blurs: FWHM of a Gaussian in the image, mm.
    double psf_mm = 0;
    /// Called after every subset with the number of steps done and of all steps.
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct EmResult {
    std::vector<float> image;  ///< [voxel] decays, as lines.hpp defines them
    /// For the image before each iteration, and for the last image: the sum over the lines of
    /// prompts * log(expected / weight), minus the sum over the voxels of sensitivity * value; the
    /// log-likelihood up to a constant. With several subsets, the share of each is computed when its turn
    /// comes, and that of the last image is left out.
    std::vector<double> log_likelihood;
    std::uint64_t outside = 0;  ///< prompts of lines that miss all voxels that can have a value
    double projection_s = 0;    ///< time of the projections
};

/// x <- x / s * sum over lines of length * prompts / (sum of lengths * x + additive), subset after subset, s
/// of a subset being `sensitivity` divided by the number of subsets. (Shepp and Vardi 1982, Hudson and Larkin
/// 1994; additive term as Politte and Snyder 1991.) It starts with the same value everywhere. With one
/// subset the likelihood does not fall. After a step with all lines, the sum of sensitivity times value is
/// the number of prompts minus the expected randoms among them. With `psf_mm`, lengths are those of an image
/// blurred by it (Reader et al. 2003): the image is that before the blur. With the time of flight, each
/// length is multiplied by the chance of the bin of the line (walk_row()).
EmResult reconstruct(Projector& projector, const Grid& grid, const Lines& lines,
                     std::span<const float> sensitivity, net::WorkerPool& pool, const EmOptions& options);

}  // namespace petacq::image
