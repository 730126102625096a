// Expected randoms on the GPU, beside the pipeline.
#pragma once

#include <memory>

#include "gpu/randoms.hpp"

namespace petacq::gpu {

/// Every crystal against every other, in blocks of targets by contributors. Works on a stream of the lowest
/// priority in memory of its own, allocated here; the caller waits for the result, the pipeline does not.
/// Throws std::runtime_error when there is no usable device or memory.
std::unique_ptr<RandomsEstimator> make_cuda_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s);

}  // namespace petacq::gpu
