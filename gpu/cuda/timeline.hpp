// Start and end times of the steps of each slice, for benchmarks. They show when the bus is idle.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/ring.hpp"
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

namespace cuda {

/// Does nothing without a sink.
class RingTimes {
  public:
    /// The events recorded before each step. `device`: the one that converts.
    struct Begins {
        explicit Begins(int device)
            : upload(cudaEventDefault, device),
              fetch(cudaEventDefault, device),
              convert(cudaEventDefault, device) {}
        Event upload;
        Event fetch;
        Event convert;
        Event order{cudaEventDefault};
        Event find{cudaEventDefault};
        Event down{cudaEventDefault};
    };

    RingTimes(const Ring& ring, TimelineSink sink) : sink_(std::move(sink)) {
        if (!sink_) return;
        first_.emplace(current_device(), start_);
        lines_.resize(ring.size());
        for (const auto& r : ring) {
            begins_.push_back(std::make_unique<Begins>(r->slice.singles.device));
            conversion_bases_.push_back(std::make_unique<Base>(r->slice.singles.device, start_));
        }
    }

    /// A time of the host.
    void mark(const SliceInFlight& r, double SliceTimeline::*step) {
        if (sink_) lines_[r.place].*step = now();
    }
    /// A time of the device.
    void mark(const SliceInFlight& r, Event Begins::*step, const Stream& stream) {
        if (sink_) (begins_[r.place].get()->*step).record(stream);
    }
    /// Reports the times once the whole slice is done.
    void tell(const SliceInFlight& r) {
        if (!sink_) return;
        const SliceFrames& frames = r.slice.frames;
        const SliceRecords& records = r.slice.records;
        SliceTimeline& line = lines_[r.place];
        line.id = r.slice.input.id;
        line.frames = frames.count;
        line.records = static_cast<std::uint32_t>(r.slice.result.coincidences.size());
        line.copies = frames.copies;
        line.copied_bytes = std::uint64_t{frames.cell_count} * net::frame_bytes;
        line.table_bytes = frames.table_bytes();
        line.down_bytes = records.count * records.packing.record_bytes() +
                          std::uint64_t{records.single_count} * sizeof(Single);
        const Begins& begins = *begins_[r.place];
        const Base& conversion = *conversion_bases_[r.place];
        line.upload_begin = at(begins.upload, conversion);
        line.upload_end = at(r.uploaded, conversion);
        line.fetch_begin = at(begins.fetch, conversion);
        line.convert_begin = at(begins.convert, conversion);
        line.convert_end = at(r.converted, conversion);
        line.order_begin = at(begins.order, *first_);
        line.order_end = at(r.ordered, *first_);
        line.find_begin = at(begins.find, *first_);
        line.find_end = at(r.found, *first_);
        line.down_begin = at(begins.down, *first_);
        line.down_end = at(r.downloaded, *first_);
        line.collected = now();
        sink_(line);
    }

  private:
    using Clock = std::chrono::steady_clock;
    static double since(Clock::time_point start) {
        return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    }
    /// Events of a device are timed from another event of it.
    struct Base {
        Base(int device, Clock::time_point start) : event(cudaEventDefault, device) {
            const OnDevice on(device);
            const Stream stream;
            event.record(stream);
            event.wait("starting the timeline");
            time = since(start);
        }
        Event event;
        double time = 0;
    };
    static int current_device() {
        int device = 0;
        check(cudaGetDevice(&device), "cudaGetDevice", "starting the timeline");
        return device;
    }
    [[nodiscard]] double now() const { return since(start_); }
    static double at(cudaEvent_t event, const Base& base) {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, base.event, event), "cudaEventElapsedTime", "reading the timeline");
        return base.time + ms;
    }

    TimelineSink sink_;
    const Clock::time_point start_ = Clock::now();
    std::optional<Base> first_;
    std::vector<std::unique_ptr<Base>> conversion_bases_;  // [place]
    std::vector<std::unique_ptr<Begins>> begins_;
    std::vector<SliceTimeline> lines_;
};

}  // namespace cuda

}  // namespace petacq::gpu
