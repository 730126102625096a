// The memory that one slice needs between submission and collection.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/bus/record_packing.hpp"
#include "gpu/cuda/bus/upload_plan.hpp"
#include "gpu/cuda/layout.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/sums.hpp"
#include "gpu/host/tags.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

struct Slot {
    /// Takes its memory from `memory`. With Purpose::plan the slot cannot be used.
    Slot(const PipelineOptions& options, Memory& memory);
    /// How many the back-end has. Short slices need more, to bridge the time that it takes to wake a thread;
    /// long ones take more memory.
    static std::size_t count(const PipelineOptions& o) {
        return o.max_slice_frames <= (std::uint32_t{4} << 20) ? 8 : 4;
    }
    /// The most cells between frames.
    static std::uint32_t gap_room(const PipelineOptions& o) { return o.max_slice_frames / 4 + 64; }
    /// The most rows of the table. Usually datagrams that were received together share one.
    static std::uint32_t table_rows(const PipelineOptions& o) { return o.max_slice_frames / 8 + 4096; }

    Input input = Input::frames;
    std::vector<ModuleSet> sources;
    ConversionTables markers;  // nothing but the markers
    HistogramSizes histogram_sizes;
    std::uint32_t frame_room = 0;
    std::uint32_t cell_room = 0;  // frames, and cells between spans
    std::uint32_t record_room = 0;
    std::uint32_t single_room = 0;

    net::FrameWords* cells = nullptr;
    // The table of the spans in one piece: tile_first, then rows.
    std::byte* table = nullptr;
    std::byte* host_table = nullptr;
    std::size_t table_head = 0;              // bytes of tile_first
    std::vector<std::uint16_t> tag_sources;  // [row] FrameSpan::tag_source; stays on the host

    std::uint32_t* histogram_memory = nullptr;
    std::size_t histogram_bytes = 0;
    SliceHistograms histograms{};
    ConvertTotals* converted = nullptr;
    ConvertTotals* host_converted = nullptr;
    FindTotals* found = nullptr;
    FindTotals* host_found = nullptr;
    RecordPacking packing;
    std::byte* records = nullptr;  // packed
    std::byte* host_records = nullptr;
    Single* host_singles = nullptr;
    SumArrays host_sums;

    // The slice.
    std::uint64_t id = 0;
    std::uint64_t late_below = 0;  // the watermark of the slice before
    std::uint64_t watermark = 0;
    std::optional<std::uint64_t> close_at;
    std::optional<std::uint64_t> decide_before;
    bool ends_interval = false;
    std::optional<TickRange> spectra;
    std::uint32_t frames = 0;
    std::uint32_t cell_count = 0;
    std::uint32_t row_count = 0;
    std::uint32_t copies = 0;   // to the device
    std::uint64_t base = 0;     // subtracted from the times of its ready singles
    std::uint64_t horizon = 0;  // singles below it are decided
    int sorted = 0;             // where its ordered singles are, see Stages

    // The result.
    std::vector<TagCell> tag_cells;  // found by conversion
    AcceptedTags tags;
    std::uint32_t record_count = 0;         // in host_records
    std::uint32_t single_count = 0;         // in host_singles
    std::vector<Coincidence> many_records;  // used instead when there are more than host_records can hold
    std::vector<Single> many_singles;
    SliceResult result;

    [[nodiscard]] const std::uint32_t* tile_first() const {
        return reinterpret_cast<const std::uint32_t*>(table);
    }
    [[nodiscard]] const SpanRow* rows() const { return reinterpret_cast<const SpanRow*>(table + table_head); }
    /// The table on the host, empty.
    [[nodiscard]] SpanTable host_span_table() {
        return {reinterpret_cast<SpanRow*>(host_table + table_head),
                reinterpret_cast<std::uint32_t*>(host_table), tag_sources.data()};
    }
    [[nodiscard]] std::span<const SpanRow> host_rows() const {
        return {reinterpret_cast<const SpanRow*>(host_table + table_head), row_count};
    }
    [[nodiscard]] std::size_t table_bytes() const { return table_head + row_count * sizeof(SpanRow); }
    /// All singles belong to the segment.
    [[nodiscard]] bool everything() const { return close_at && *close_at == UINT64_MAX; }
    [[nodiscard]] bool ends_segment() const { return close_at && !decide_before; }
};

}  // namespace petacq::gpu::cuda
