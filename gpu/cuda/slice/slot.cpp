#include "gpu/cuda/slice/slot.hpp"

#include <algorithm>

namespace petacq::gpu::cuda {

namespace {

/// A slice of frames may decide its own singles and this many that waited, because a source was late. No
/// source of singles is late.
constexpr std::uint64_t max_waiting = std::uint64_t{4} << 20;

}  // namespace

/// Room for the records of a slice in which every frame is accepted.
std::uint32_t Slot::record_room_for(const PipelineOptions& o) {
    const std::uint64_t waiting =
        o.input == Input::singles ? 0 : std::min(o.max_pending_singles, max_waiting);
    const auto singles = static_cast<std::uint32_t>(o.max_slice_frames + waiting);
    const std::uint32_t of_a_kind = o.rules.mode == WindowMode::single ? singles / 2 : singles;
    return (o.rules.delay ? 2 * of_a_kind : of_a_kind) + 256;
}

Slot::Slot(const PipelineOptions& o, Memory& conversion, Memory& memory) {
    histogram_sizes = HistogramSizes::of(o.geometry);
    input = o.input;
    sources = o.sources;
    markers.head_marker = o.head_marker;
    markers.tail_marker = o.tail_marker;
    markers.tag_marker = o.tag_marker;
    frame_room = o.max_slice_frames;
    cell_room = cell_room_for(o);
    const std::uint32_t tiles = cell_room / cell_tile + 2;
    record_room = record_room_for(o);
    single_room = o.emit_singles ? frame_room : 0;
    device = conversion.device_number();
    cells = conversion.device<net::FrameWords>(cell_room);
    table_head = (std::size_t{tiles} * sizeof(std::uint32_t) + sizeof(SpanRow) - 1) / sizeof(SpanRow) *
                 sizeof(SpanRow);
    const std::size_t whole_table = table_head + table_rows(o) * sizeof(SpanRow);
    table = conversion.device<std::byte>(whole_table);
    host_table = conversion.pinned<std::byte>(whole_table);
    tag_sources.resize(table_rows(o));
    // The 64-bit temperature sums come first because of their alignment.
    histogram_bytes = std::size_t{histogram_sizes.total() + histogram_sizes.units} * sizeof(std::uint32_t);
    histogram_memory = conversion.device<std::uint32_t>(histogram_bytes / sizeof(std::uint32_t));
    if (histogram_memory != nullptr) {
        histograms.temperature_sum = reinterpret_cast<std::uint64_t*>(histogram_memory);
        histograms.per_crystal = histogram_memory + std::size_t{2} * histogram_sizes.units;
        histograms.energy = histograms.per_crystal + histogram_sizes.crystals;
        histograms.temperature_count = histograms.energy + histogram_sizes.energies;
    }
    converted = conversion.device<ConvertTotals>(1);
    host_converted = conversion.pinned<ConvertTotals>(1);
    if (&conversion != &memory) {
        const auto arrays = [&] {
            return SingleArrays{conversion.device<std::uint64_t>(frame_room),
                                conversion.device<std::uint64_t>(frame_room)};
        };
        ahead.ready = arrays();
        ahead.pending = arrays();
        if (o.input == Input::frames) ahead.tags = conversion.device<TagCell>(frame_room);
    }
    found = memory.device<FindTotals>(1);
    host_found = memory.pinned<FindTotals>(1);
    packing = RecordPacking::of(o.geometry.crystal_count(), o.rules.window);
    records = memory.device<std::byte>(record_room * packing.record_bytes());
    host_records = memory.pinned<std::byte>(record_room * packing.record_bytes());
    host_singles = memory.pinned<Single>(single_room);
    host_sums =
        SumArrays::make(o.geometry, [&](std::size_t bytes) { return memory.pinned<std::byte>(bytes); });
}

}  // namespace petacq::gpu::cuda
