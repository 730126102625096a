// The stages of the CUDA back-end on one slice that is already on the device, for ordinary and for
// adversarial times.
#pragma once

#include <span>

#include "config/calibration.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petbench/cuda/input.hpp"

namespace petacq::bench {

/// Measures and prints a row for each kind of input: milliseconds and frames per second of each stage, and
/// the ratio of the whole to the copy rates. The slice is the first `slice_frames` frames of `input`, whose
/// times are overwritten.
void print_stages(const config::Calibration& calibration, gpu::PipelineOptions options,
                  const CudaInput& input, std::size_t slice_frames, const CopyRates& copies, int repeat);

}  // namespace petacq::bench
