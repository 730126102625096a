// Start and end times of the steps of each slice, for benchmarks. They show when the bus is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Milliseconds since the pipeline was created. Device times come from events and use the same scale.
struct SliceTimeline {
    std::uint64_t id = 0;
    std::uint32_t frames = 0;
    std::uint32_t records = 0;
    std::uint32_t copies = 0;        ///< to the device
    std::uint64_t copied_bytes = 0;  ///< in them: frames, and what lies between spans
    std::uint64_t table_bytes = 0;   ///< of the table of spans, read by the device
    std::uint64_t down_bytes = 0;    ///< records and singles
    double submit_begin = 0;         ///< the caller enters submit()
    double submit_end = 0;           ///< submit() returns
    double plan_begin = 0;           ///< the uploader starts planning the copies
    double plan_end = 0;             ///< all copies are issued, and the table of spans is complete
    double upload_begin = 0;         ///< device: frames on the bus
    double upload_end = 0;           ///< device
    double fetch_begin = 0;          ///< device: the table of spans on the bus
    double convert_begin = 0;        ///< device
    double convert_end = 0;          ///< device
    double order_begin = 0;          ///< device: once the host has read the counts
    double order_end = 0;            ///< device
    double find_begin = 0;           ///< device: once the host has read the totals of the slice before
    double find_end = 0;             ///< device
    double down_begin = 0;           ///< device: records on the bus
    double down_end = 0;             ///< device
    double deliver_begin = 0;        ///< the deliverer starts assembling the result
    double deliver_end = 0;
    double collected = 0;  ///< the caller has the result
};

/// Called by collect() for every slice.
using TimelineSink = std::function<void(const SliceTimeline&)>;

/// Like make_cuda_pipeline, but reports the times of every slice to the sink, if there is one.
std::unique_ptr<Pipeline> make_timed_cuda_pipeline(const PipelineOptions& options,
                                                   const config::Calibration& calibration,
                                                   TimelineSink timeline);

}  // namespace petacq::gpu
