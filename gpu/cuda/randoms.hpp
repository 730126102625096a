// Estimates expected randoms on the GPU, concurrently with the pipeline.
#pragma once

#include <memory>

#include "gpu/randoms.hpp"

namespace petacq::gpu {

/// Combines every crystal with every other, in blocks of targets and contributors. It uses a stream of the
/// lowest priority and memory of its own, allocated here. The caller waits for the result; the pipeline does
/// not. Throws std::runtime_error when there is no usable device or too little memory.
std::unique_ptr<RandomsEstimator> make_cuda_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s);

}  // namespace petacq::gpu
