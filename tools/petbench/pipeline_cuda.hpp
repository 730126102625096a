// Suite "pipeline", CUDA back-end.
#pragma once

#include <vector>

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::bench {

struct CudaPipelineBench {
    double singles_per_s = 50e6;  ///< of detector time
    int repeat = 5;               ///< passes of which the median is taken
    std::size_t frames = 384U << 20;
    std::vector<std::size_t> slices{1U << 20, 4U << 20,
                                    16U << 20};  ///< frames in a slice; the stages: the last
};

/// Measures on the first GPU and prints: the copy rates of bus and device, the whole pipeline from pinned
/// host memory to records in host memory for every slice length, the stages on the device alone, and the same
/// for adversarial times. `options` gives geometry, energy window, rules and the threads that copy results.
/// Throws std::runtime_error when CUDA cannot be used.
void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const CudaPipelineBench& bench);

}  // namespace petacq::bench
