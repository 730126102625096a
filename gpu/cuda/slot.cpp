#include "gpu/cuda/slot.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <nvtx3/nvtx3.hpp>

#include "gpu/arithmetic.hpp"
#include "gpu/cuda/check.hpp"

namespace petacq::gpu::cuda {

namespace {

/// Room for the records of a slice in which every frame is accepted. Slices with more records are possible
/// (TakeAllGoods, or many pending singles) and take longer.
std::uint32_t records_for(std::uint32_t frames, const CoincidenceRules& rules) {
    const std::uint32_t of_a_kind = rules.mode == WindowMode::single ? frames / 2 : frames;
    return (rules.delay ? 2 * of_a_kind : of_a_kind) + 256;
}

}  // namespace

Slot::Slot(const PipelineOptions& o, Memory& memory) {
    histogram_sizes = {o.geometry.crystal_count(), o.geometry.bdm_count * SinglesHistograms::energy_bins,
                       o.geometry.bdm_count * o.geometry.du_count};
    input = o.input;
    sources = o.sources;
    frame_room = o.max_slice_frames;
    cell_room = frame_room + frame_room / 4 + 64;
    const std::uint32_t tiles = cell_room / cell_tile + 2;
    // Spans are usually datagrams.
    span_room = frame_room / 8 + 4096;
    record_room = records_for(frame_room, o.rules);
    single_room = o.emit_singles ? frame_room : 0;
    cells = memory.device<net::FrameWords>(cell_room);
    table_head = (std::size_t{tiles} * sizeof(std::uint32_t) + 31) / 32 * 32;
    const std::size_t entries = span_room + frame_room / SpanEntry::most_frames + 1;
    const std::size_t table_bytes = table_head + entries * sizeof(SpanEntry);
    table = memory.device<std::byte>(table_bytes);
    host_table = memory.pinned<std::byte>(table_bytes);
    if (table != nullptr) {
        tile_first = reinterpret_cast<std::uint32_t*>(table);
        spans = reinterpret_cast<SpanEntry*>(table + table_head);
        host_tile_first = reinterpret_cast<std::uint32_t*>(host_table);
        host_spans = reinterpret_cast<SpanEntry*>(host_table + table_head);
    }
    // The 64-bit temperature sums come first because of their alignment.
    histogram_bytes = std::size_t{histogram_sizes.total() + histogram_sizes.units} * sizeof(std::uint32_t);
    histogram_memory = memory.device<std::uint32_t>(histogram_bytes / sizeof(std::uint32_t));
    if (histogram_memory != nullptr) {
        histograms.temperature_sum = reinterpret_cast<std::uint64_t*>(histogram_memory);
        histograms.per_crystal = histogram_memory + std::size_t{2} * histogram_sizes.units;
        histograms.energy = histograms.per_crystal + histogram_sizes.crystals;
        histograms.temperature_count = histograms.energy + histogram_sizes.energies;
    }
    converted = memory.device<ConvertTotals>(1);
    host_converted = memory.pinned<ConvertTotals>(1);
    found = memory.device<FindTotals>(1);
    host_found = memory.pinned<FindTotals>(1);
    records = memory.device<Coincidence>(record_room);
    host_records = memory.pinned<Coincidence>(record_room);
    host_singles = memory.pinned<Single>(single_room);
}

namespace {

constexpr std::size_t packed_bytes = std::size_t{1} << 20;

/// Places spans one after the other on the device with few copies.
class Uploader {
  public:
    Uploader(Slot& slot, cudaStream_t stream) : slot_(slot), stream_(stream) {}

    void add(const FrameSpan& span) {
        const std::size_t gap =
            static_cast<std::size_t>(span.frames - run_end_);  // wraps around for a span at a lower address
        const std::size_t gap_cells = gap / net::frame_bytes;
        const bool joins = run_end_ != nullptr && span.frames >= run_end_ && gap <= copied_gap &&
                           gap % net::frame_bytes == 0 && gaps_ + gap_cells <= gap_room();
        if (joins) {
            gaps_ += gap_cells;
            next_cell_ += static_cast<std::uint32_t>(gap_cells);
        } else {
            copy_run();
            run_begin_ = span.frames;
            run_cell_ = next_cell_;
        }
        const std::uint32_t source = slot_.sources.empty() ? 0 : span.source;
        SpanEntry* const last = joins && gap == 0 ? &slot_.host_spans[entries_ - 1] : nullptr;
        if (last != nullptr && last->time_low == span.time_low && last->time_high == span.time_high &&
            last->source() == source && last->count() + span.count <= SpanEntry::most_frames) {
            *last = SpanEntry::of(last->first(), last->count() + span.count, source, span.time_low,
                                  span.time_high);
        } else {
            enter(next_cell_, span.count, source, span.time_low, span.time_high);
        }
        run_end_ = span.frames + std::size_t{span.count} * net::frame_bytes;
        next_cell_ += span.count;
        if (static_cast<std::size_t>(run_end_ - run_begin_) >= copied_piece) {
            copy_run();
            run_begin_ = run_end_;
            run_cell_ = next_cell_;
        }
    }

    /// Packs the frames of spans that are too many for the table, into one span for each lot. The order of
    /// frames within a slice does not matter.
    void pack(std::span<const FrameSpan> spans) {
        std::vector<std::byte> packed(packed_bytes);
        for (const Lot lot : {Lot::inside, Lot::outside, Lot::foreign}) {
            const std::uint32_t first = next_cell_;
            std::size_t used = 0;
            const auto send = [&] {
                if (used == 0) return;
                copy(slot_.cells + next_cell_, packed.data(), used);
                check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                      "copying frames to the device");
                next_cell_ += static_cast<std::uint32_t>(used / net::frame_bytes);
                used = 0;
            };
            for (const FrameSpan& span : spans) {
                const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
                const std::byte* frame = span.frames;
                for (std::uint32_t k = 0; k < span.count; ++k, frame += net::frame_bytes) {
                    if (lot_of(frame, span.source, guard) != lot) continue;
                    if (used == packed.size()) send();
                    std::memcpy(packed.data() + used, frame, net::frame_bytes);
                    used += net::frame_bytes;
                }
            }
            send();
            if (next_cell_ == first) continue;
            const bool outside = lot == Lot::outside;
            // The source after the last one has no modules.
            const std::size_t source = lot == Lot::foreign ? slot_.sources.size() + 1 : 0;
            enter(first, next_cell_ - first, static_cast<std::uint32_t>(source), outside ? 1 : 0,
                  outside ? 0 : UINT64_MAX);
        }
    }

    void finish() {
        copy_run();
        slot_.cell_count = next_cell_;
        slot_.span_count = entries_;
        if (entries_ == 0) return;
        const std::uint32_t tiles = (next_cell_ + cell_tile - 1) / cell_tile;
        while (next_tile_ <= tiles)
            slot_.host_tile_first[next_tile_++] = entries_ - 1;
        copy(slot_.table, slot_.host_table, slot_.table_head + entries_ * sizeof(SpanEntry));
    }

  private:
    /// Frames that are packed together: those inside the time windows of their spans; those outside, which
    /// get an empty window; those with a module that is not their source's.
    enum class Lot : std::uint8_t { inside, outside, foreign };

    [[nodiscard]] Lot lot_of(const std::byte* frame, std::uint32_t source, const TimeGuard& guard) const {
        if (!slot_.sources.empty() && source != 0 && !slot_.sources[source - 1][net::frame_bdm(frame)])
            return Lot::foreign;
        return guard.refuses(time_of(frame)) ? Lot::outside : Lot::inside;
    }

    [[nodiscard]] std::size_t gap_room() const { return slot_.cell_room - slot_.frame_room; }

    [[nodiscard]] std::uint64_t time_of(const std::byte* frame) const {
        if (slot_.input == Input::frames) return net::frame_time(frame);
        std::uint64_t time = 0;
        std::memcpy(&time, frame + offsetof(Single, time), sizeof time);
        return time;
    }

    void enter(std::uint32_t first, std::uint32_t count, std::uint32_t source, std::uint64_t low,
               std::uint64_t high) {
        while (count > 0) {
            const std::uint32_t part = std::min(count, SpanEntry::most_frames);
            while (std::uint64_t{next_tile_} * cell_tile < first)
                slot_.host_tile_first[next_tile_++] = entries_ - 1;
            slot_.host_spans[entries_++] = SpanEntry::of(first, part, source, low, high);
            first += part;
            count -= part;
        }
    }

    void copy_run() {
        if (run_end_ == run_begin_) return;
        copy(slot_.cells + run_cell_, run_begin_, static_cast<std::size_t>(run_end_ - run_begin_));
    }

    void copy(void* to, const void* from, std::size_t bytes) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync",
              "copying frames to the device");
    }

    Slot& slot_;
    cudaStream_t stream_;
    const std::byte* run_begin_ = nullptr;
    const std::byte* run_end_ = nullptr;
    std::uint32_t run_cell_ = 0;
    std::uint32_t next_cell_ = 0;
    std::size_t gaps_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t next_tile_ = 0;
};

}  // namespace

void upload(std::span<const FrameSpan> spans, Slot& slot, cudaStream_t stream) {
    const nvtx3::scoped_range range{"upload"};
    std::uint64_t frames = 0;
    std::size_t with_frames = 0;
    for (const FrameSpan& span : spans) {
        frames += span.count;
        with_frames += span.count > 0 ? 1 : 0;
    }
    if (frames > slot.frame_room) {
        throw std::invalid_argument(
            fmt::format("a slice of {} frames: at most {} (max_slice_frames)", frames, slot.frame_room));
    }
    slot.frames = static_cast<std::uint32_t>(frames);
    Uploader uploader(slot, stream);
    if (with_frames > slot.span_room) {
        uploader.pack(spans);
    } else {
        for (const FrameSpan& span : spans) {
            if (span.count > 0) uploader.add(span);
        }
    }
    uploader.finish();
}

}  // namespace petacq::gpu::cuda
