// Suite "pipeline", CUDA back-end.
#pragma once

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {

/// Measures and prints: the copy rates of bus and device of the first GPU, the whole pipeline on
/// options.devices from pinned host memory to records in host memory for every slice length, and the stages
/// on the first GPU alone, also for adversarial times. `options` gives geometry, energy window, rules, the
/// devices and the threads that copy results.
/// Throws std::runtime_error when CUDA cannot be used.
void run_cuda_pipeline(const config::Scanner& scanner, const config::Calibration& calibration,
                       gpu::PipelineOptions options, const PipelineSuite& suite);

}  // namespace petacq::bench
