// When the steps of slices began and ended, for benchmarks: tells a bus that waits from one that works.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Milliseconds since the pipeline was made; those of the device as its events tell, on the same scale.
struct SliceTimeline {
    std::uint64_t id = 0;
    std::uint32_t frames = 0;
    std::uint32_t records = 0;
    double submit_begin = 0;   ///< the caller calls submit
    double submit_end = 0;     ///< and has it back
    double upload_begin = 0;   ///< device: frames on the bus
    double upload_end = 0;     ///< device
    double convert_begin = 0;  ///< device
    double convert_end = 0;    ///< device
    double order_begin = 0;    ///< device: once the host has read the counts
    double find_end = 0;       ///< device
    double down_begin = 0;     ///< device: records on the bus
    double down_end = 0;       ///< device
    double deliver_begin = 0;  ///< the deliverer makes the result
    double deliver_end = 0;
    double collected = 0;  ///< the caller has it
};

/// Called by collect() for every slice.
using TimelineSink = std::function<void(const SliceTimeline&)>;

/// As make_cuda_pipeline; with a sink, tells the times of every slice.
std::unique_ptr<Pipeline> make_timed_cuda_pipeline(const PipelineOptions& options,
                                                   const config::Calibration& calibration,
                                                   TimelineSink timeline);

}  // namespace petacq::gpu
