// One place in the ring of slices in flight, and the timeline of its slice for benchmarks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/cuda/timeline.hpp"

namespace petacq::gpu::cuda {

/// A slice and the events that order its work on the streams.
struct SliceInFlight {
    /// `memory`: of the first device. `flags`: those of the events that a timeline reads.
    SliceInFlight(std::size_t place_in_ring, const PipelineOptions& options, Memory& conversion,
                  Memory& memory, unsigned flags)
        : place(place_in_ring),
          slice(options, conversion, memory),
          uploaded(flags, slice.singles.device),
          converted(flags | cudaEventBlockingSync, slice.singles.device),
          folded(cudaEventDisableTiming, slice.singles.device),
          joined(cudaEventDisableTiming | cudaEventBlockingSync),
          ordered(flags),
          found(flags | cudaEventBlockingSync),
          downloaded(flags | cudaEventBlockingSync) {}
    const std::size_t place;
    DeviceSlice slice;
    // On the device that converts.
    Event uploaded;
    Event converted;
    Event folded;
    // On the first device.
    Event joined;
    Event ordered;
    Event found;
    Event downloaded;
};

using Ring = std::vector<std::unique_ptr<SliceInFlight>>;

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

}  // namespace petacq::gpu::cuda
