// Suite "pipeline", CUDA back-end.
#pragma once

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {

/// Measures on the first GPU and prints: the copy rates of bus and device, the whole pipeline from pinned
/// host memory to records in host memory for every slice length, and the stages on the device alone, also for
/// adversarial times. `options` gives geometry, energy window, rules and the threads that copy results.
/// Throws std::runtime_error when CUDA cannot be used.
void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const PipelineSuite& suite);

}  // namespace petacq::bench
