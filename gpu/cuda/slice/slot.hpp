// The memory that one slice needs between submission and collection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/base/layout.hpp"
#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/single_arrays.hpp"
#include "gpu/cuda/base/sums.hpp"
#include "gpu/cuda/slice/record_packing.hpp"
#include "gpu/cuda/slice/span_table.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/tags.hpp"

namespace petacq::gpu::cuda {

struct Slot {
    /// `conversion`: memory of the device that converts its slices; `memory`: of the first device, which does
    /// the rest. If they differ, the slices are converted ahead. With Purpose::plan the slot cannot be used.
    Slot(const PipelineOptions& options, Memory& conversion, Memory& memory);
    /// How many the back-end has: as many for each device. Short slices need more, to bridge the time that it
    /// takes to wake a thread; long ones take more memory. A further device needs one to copy to, and one
    /// that is on its way to the first.
    static std::size_t count(const PipelineOptions& o) {
        const std::size_t devices = std::max<std::size_t>(o.devices.size(), 1);
        const std::size_t least =
            (o.max_slice_frames <= (std::uint32_t{4} << 20) ? 8 : 4) + 2 * (devices - 1);
        return (least + devices - 1) / devices * devices;
    }
    /// The most cells between frames.
    static std::uint32_t gap_room(const PipelineOptions& o) { return o.max_slice_frames / 4 + 64; }
    /// The most frames and cells between frames.
    static std::uint32_t cell_room_for(const PipelineOptions& o) { return o.max_slice_frames + gap_room(o); }
    /// The most records in one piece. Slices with more are possible (TakeAllGoods, or very many pending
    /// singles) and take longer.
    static std::uint32_t record_room_for(const PipelineOptions& o);
    /// The most rows of the table. Usually datagrams that were received together share one.
    static std::uint32_t table_rows(const PipelineOptions& o) { return o.max_slice_frames / 8 + 4096; }

    Input input = Input::frames;
    std::vector<ModuleSet> sources;
    ConversionTables markers;  // nothing but the markers
    HistogramSizes histogram_sizes;
    std::uint32_t frame_room = 0;
    std::uint32_t cell_room = 0;
    std::uint32_t record_room = 0;
    std::uint32_t single_room = 0;

    // On the device that converts, and their copies on the host.
    int device = 0;  // its number
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
    ConvertOutput ahead;            // none: the slices are converted on the first device
    TagCell* found_tags = nullptr;  // by the conversion of the slice

    // On the first device, and their copies on the host.
    FindTotals* found = nullptr;
    FindTotals* host_found = nullptr;
    RecordPacking packing;
    std::byte* records = nullptr;  // packed
    std::byte* host_records = nullptr;
    Single* host_singles = nullptr;
    SumArrays host_sums;

    // The slice.
    std::uint64_t id = 0;
    std::uint64_t late_below =
        0;  // the watermark of the slice before; the times of ready singles count from it
    std::uint64_t watermark = 0;
    std::optional<std::uint64_t> close_at;
    std::optional<std::uint64_t> decide_before;
    bool ends_interval = false;
    std::optional<TickRange> spectra;
    std::uint32_t frames = 0;
    std::uint32_t cell_count = 0;
    std::uint32_t row_count = 0;
    std::uint32_t copies = 0;   // to the device
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
    /// Its slices are converted on another device than the first.
    [[nodiscard]] bool is_ahead() const { return ahead.ready.time != nullptr; }
    /// All singles belong to the segment.
    [[nodiscard]] bool everything() const { return close_at && *close_at == UINT64_MAX; }
    [[nodiscard]] bool ends_segment() const { return close_at && !decide_before; }
};

}  // namespace petacq::gpu::cuda
