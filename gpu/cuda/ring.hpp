// One place in the ring of slices in flight, and the timeline of its slice for benchmarks.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/slot.hpp"
#include "gpu/cuda/timeline.hpp"

namespace petacq::gpu::cuda {

/// A slot and the events that order its work on the streams.
struct RingSlot {
    /// `flags`: those of the events that a timeline reads.
    RingSlot(std::size_t place_in_ring, const PipelineOptions& options, Memory& memory, unsigned flags)
        : place(place_in_ring),
          slot(options, memory),
          uploaded(flags),
          converted(flags | cudaEventBlockingSync),
          ordered(flags),
          found(flags | cudaEventBlockingSync),
          downloaded(flags | cudaEventBlockingSync) {}
    const std::size_t place;
    Slot slot;
    std::span<const FrameSpan> spans;
    Event uploaded;
    Event converted;
    Event ordered;
    Event found;
    Event downloaded;
    Event folded;
};

class RingTimes {
  public:
    /// The events recorded before each step.
    struct Begins {
        Event upload{cudaEventDefault};
        Event fetch{cudaEventDefault};
        Event convert{cudaEventDefault};
        Event order{cudaEventDefault};
        Event find{cudaEventDefault};
        Event down{cudaEventDefault};
    };

    RingTimes(std::size_t places, TimelineSink sink)
        : sink_(std::move(sink)), base_(cudaEventDefault), lines_(places) {
        for (std::size_t i = 0; i < places; ++i)
            begins_.push_back(std::make_unique<Begins>());
        const Stream stream;
        base_.record(stream);
        base_.wait("starting the timeline");
        start_ = std::chrono::steady_clock::now();
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
        line.upload_begin = at(begins(place).upload);
        line.upload_end = at(r.uploaded);
        line.fetch_begin = at(begins(place).fetch);
        line.convert_begin = at(begins(place).convert);
        line.convert_end = at(r.converted);
        line.order_begin = at(begins(place).order);
        line.order_end = at(r.ordered);
        line.find_begin = at(begins(place).find);
        line.find_end = at(r.found);
        line.down_begin = at(begins(place).down);
        line.down_end = at(r.downloaded);
        line.collected = now();
        sink_(line);
    }

  private:
    [[nodiscard]] double now() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
    }
    [[nodiscard]] double at(cudaEvent_t event) const {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, base_, event), "cudaEventElapsedTime", "reading the timeline");
        return ms;
    }

    TimelineSink sink_;
    Event base_;
    std::chrono::steady_clock::time_point start_;
    std::vector<std::unique_ptr<Begins>> begins_;
    std::vector<SliceTimeline> lines_;
};

}  // namespace petacq::gpu::cuda
