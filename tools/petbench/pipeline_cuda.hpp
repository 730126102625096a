// Suite "pipeline", CUDA back-end.
#pragma once

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::bench {

struct CudaPipelineBench {
    double singles_per_s = 50e6;  ///< of detector time
    int repeat = 5;               ///< passes of which the median is taken
    std::size_t frames = 384U << 20;
    bool adversarial = true;
};

/// Measures on the first GPU and prints: the copy rates of bus and device, the whole pipeline from pinned
/// host memory to records in host memory for slices of 1, 4 and 16 Mi frames, the stages on the device alone,
/// and the same for adversarial times. `options` gives geometry, energy window and rules. Throws
/// std::runtime_error when CUDA cannot be used.
void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const CudaPipelineBench& bench);

}  // namespace petacq::bench
