// The memory that one slice needs between submission and collection: a part for each stage that fills it.
#pragma once

#include <algorithm>
#include <cstdint>
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

/// The most singles on the first device, and so the most that wait.
inline std::uint64_t room_for_singles(const PipelineOptions& o) {
    return o.max_pending_singles + o.max_slice_frames;
}

/// The uploaded frames, on the device that converts them, and the table that says where they are.
struct SliceFrames {
    SliceFrames(const PipelineOptions& options, Memory& memory);
    /// The most cells between frames.
    static std::uint32_t gap_room(const PipelineOptions& o) { return o.max_slice_frames / 4 + 64; }
    /// The most frames and cells between frames.
    static std::uint32_t cell_room(const PipelineOptions& o) { return o.max_slice_frames + gap_room(o); }
    /// The most rows of the table. Usually datagrams that were received together share one.
    static std::uint32_t table_rows(const PipelineOptions& o) { return o.max_slice_frames / 8 + 4096; }

    std::uint32_t room = 0;  // frames
    net::FrameWords* cells = nullptr;
    // The table of the spans in one piece: tile_first, then rows.
    std::byte* table = nullptr;
    std::byte* host_table = nullptr;
    std::size_t table_head = 0;              // bytes of tile_first
    std::vector<std::uint16_t> tag_sources;  // [row] FrameSpan::tag_source; stays on the host

    std::uint32_t count = 0;
    std::uint32_t cell_count = 0;
    std::uint32_t row_count = 0;
    std::uint32_t copies = 0;  // to the device

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
};

/// What conversion has made of the frames, on the device that converts.
struct SliceSingles {
    /// `ahead`: converted into arrays of the slice, on another device than the first.
    SliceSingles(const PipelineOptions& options, Memory& memory, bool ahead);

    int device = 0;  // its number
    std::uint32_t* histogram_memory = nullptr;
    std::size_t histogram_bytes = 0;
    SliceHistograms histograms{};
    ConvertTotals* totals = nullptr;
    ConvertTotals* host_totals = nullptr;
    ConvertOutput ahead;             // none: the slices are converted on the first device
    TagCell* found_tags = nullptr;   // by the conversion of the slice
    std::vector<TagCell> host_tags;  // the same
    // By time, on the first device; they belong to Ordering.
    SingleArrays sorted;
    SingleArrays sorted_gammas;

    [[nodiscard]] bool is_ahead() const { return ahead.ready.time != nullptr; }
};

/// What the search has found, on the first device and on the host.
struct SliceRecords {
    SliceRecords(const PipelineOptions& options, Memory& memory);
    /// The most records in one piece. Slices with more are possible (TakeAllGoods, or very many pending
    /// singles) and take longer.
    static std::uint32_t room_for(const PipelineOptions& o);

    std::uint32_t room = 0;
    std::uint32_t single_room = 0;
    SearchTotals* totals = nullptr;
    SearchTotals* host_totals = nullptr;
    RecordPacking packing;
    std::byte* packed = nullptr;
    std::byte* host_packed = nullptr;
    Single* host_singles = nullptr;
    SumArrays host_sums;

    [[nodiscard]] std::span<const Single> singles() const {
        return many_singles.empty() ? std::span<const Single>(host_singles, single_count)
                                    : std::span<const Single>(many_singles);
    }

    std::uint64_t horizon = 0;       // singles below it are decided
    std::uint64_t newest = 0;        // time of the newest accepted single or gamma so far
    std::uint32_t count = 0;         // in host_packed
    std::uint32_t single_count = 0;  // in host_singles
    std::vector<Coincidence> many;   // used instead when there are more than host_packed can hold
    std::vector<Single> many_singles;
};

/// The gammas below the watermark, in order, on the host.
struct SliceGammas {
    /// So many places in front of them are free.
    static constexpr std::uint32_t lead = std::uint32_t{1} << 14;

    SliceGammas(const PipelineOptions& options, Memory& memory);
    [[nodiscard]] Single* first() { return (many.empty() ? host : many.data()) + lead; }

    std::uint32_t room;  // without the lead
    Single* host = nullptr;
    std::uint32_t count = 0;
    RecordVector<Single> many;  // used instead when there are more than `room`; with the lead
};

struct DeviceSlice {
    /// `conversion`: memory of the device that converts its slices; `memory`: of the first device, which does
    /// the rest. If they differ, the slices are converted ahead. With Purpose::plan it cannot be used.
    DeviceSlice(const PipelineOptions& options, Memory& conversion, Memory& memory)
        : frames(options, conversion),
          singles(options, conversion, &conversion != &memory),
          records(options, memory),
          gammas(options, memory) {}
    /// How many the back-end has: as many for each device. Short slices need more, to bridge the time that it
    /// takes to wake a thread; long ones take more memory. A further device needs one to copy to, and one
    /// that is on its way to the first.
    static std::size_t count(const PipelineOptions& o) {
        const std::size_t devices = std::max<std::size_t>(o.devices.size(), 1);
        const std::size_t least =
            (o.max_slice_frames <= (std::uint32_t{4} << 20) ? 8 : 4) + 2 * (devices - 1);
        return (least + devices - 1) / devices * devices;
    }

    Slice input;
    std::uint64_t late_below = 0;  // the watermark of the slice before; times of ready singles count from it
    SliceFrames frames;
    SliceSingles singles;
    SliceRecords records;
    SliceGammas gammas;
    AcceptedTags tags;
    SliceResult result;
};

}  // namespace petacq::gpu::cuda
