// One place in the ring of slices in flight, and the timeline of its slice for benchmarks.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/slot.hpp"
#include "gpu/cuda/timeline.hpp"

namespace petacq::gpu::cuda {

/// A slot and the events that order its work on the streams.
struct RingSlot {
    /// `memory`: of the first device. `flags`: those of the events that a timeline reads.
    RingSlot(std::size_t place_in_ring, const PipelineOptions& options, Memory& conversion, Memory& memory,
             unsigned flags)
        : place(place_in_ring),
          slot(options, conversion, memory),
          uploaded(flags, slot.device),
          converted(flags | cudaEventBlockingSync, slot.device),
          folded(cudaEventDisableTiming, slot.device),
          joined(cudaEventDisableTiming | cudaEventBlockingSync),
          ordered(flags),
          found(flags | cudaEventBlockingSync),
          downloaded(flags | cudaEventBlockingSync) {}
    const std::size_t place;
    Slot slot;
    std::span<const FrameSpan> spans;
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

    RingTimes(const std::vector<std::unique_ptr<RingSlot>>& ring, TimelineSink sink)
        : sink_(std::move(sink)), lines_(ring.size()) {
        for (const auto& r : ring) {
            begins_.push_back(std::make_unique<Begins>(r->slot.device));
            conversion_bases_.push_back(std::make_unique<Base>(r->slot.device, start_));
        }
    }

    [[nodiscard]] const Begins& begins(std::size_t place) const { return *begins_[place]; }
    void mark(std::size_t place, double SliceTimeline::*step) { lines_[place].*step = now(); }
    /// Reports the times once the whole slice is done.
    void tell(std::size_t place, const RingSlot& r) {
        SliceTimeline& line = lines_[place];
        line.id = r.slot.id;
        line.frames = r.slot.frames;
        line.records = static_cast<std::uint32_t>(r.slot.result.coincidences.size());
        line.copies = r.slot.copies;
        line.copied_bytes = std::uint64_t{r.slot.cell_count} * net::frame_bytes;
        line.table_bytes = r.slot.table_bytes();
        line.down_bytes = r.slot.record_count * r.slot.packing.record_bytes() +
                          std::uint64_t{r.slot.single_count} * sizeof(Single);
        const Base& conversion = *conversion_bases_[place];
        line.upload_begin = at(begins(place).upload, conversion);
        line.upload_end = at(r.uploaded, conversion);
        line.fetch_begin = at(begins(place).fetch, conversion);
        line.convert_begin = at(begins(place).convert, conversion);
        line.convert_end = at(r.converted, conversion);
        line.order_begin = at(begins(place).order, first_);
        line.order_end = at(r.ordered, first_);
        line.find_begin = at(begins(place).find, first_);
        line.find_end = at(r.found, first_);
        line.down_begin = at(begins(place).down, first_);
        line.down_end = at(r.downloaded, first_);
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
    const Base first_{current_device(), start_};
    std::vector<std::unique_ptr<Base>> conversion_bases_;  // [place]
    std::vector<std::unique_ptr<Begins>> begins_;
    std::vector<SliceTimeline> lines_;
};

}  // namespace petacq::gpu::cuda
