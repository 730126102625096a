#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

namespace {

/// A slice of frames may decide its own singles and this many that waited, because a source was late. No
/// source of singles is late.
constexpr std::uint64_t max_waiting = std::uint64_t{4} << 20;

}  // namespace

SliceFrames::SliceFrames(const PipelineOptions& o, Memory& memory) : room(o.max_slice_frames) {
    const std::uint32_t tiles = cell_room(o) / cell_tile + 2;
    cells = memory.device<net::FrameWords>(cell_room(o));
    table_head = (std::size_t{tiles} * sizeof(std::uint32_t) + sizeof(SpanRow) - 1) / sizeof(SpanRow) *
                 sizeof(SpanRow);
    const std::size_t whole_table = table_head + table_rows(o) * sizeof(SpanRow);
    table = memory.device<std::byte>(whole_table);
    host_table = memory.pinned<std::byte>(whole_table);
    tag_sources.resize(table_rows(o));
}

SliceSingles::SliceSingles(const PipelineOptions& o, Memory& memory, bool is_converted_ahead)
    : device(memory.device_number()) {
    const HistogramSizes sizes = HistogramSizes::of(o.geometry);
    // The 64-bit temperature sums come first because of their alignment.
    histogram_bytes = std::size_t{sizes.total() + sizes.units} * sizeof(std::uint32_t);
    histogram_memory = memory.device<std::uint32_t>(histogram_bytes / sizeof(std::uint32_t));
    if (histogram_memory != nullptr) {
        histograms.temperature_sum = reinterpret_cast<std::uint64_t*>(histogram_memory);
        histograms.per_crystal = histogram_memory + std::size_t{2} * sizes.units;
        histograms.energy = histograms.per_crystal + sizes.crystals;
        histograms.temperature_count = histograms.energy + sizes.energies;
    }
    totals = memory.device<ConvertTotals>(1);
    host_totals = memory.pinned<ConvertTotals>(1);
    if (!is_converted_ahead) return;
    ahead.ready = SingleArrays::of(memory, o.max_slice_frames);
    ahead.room = o.max_slice_frames;
    ahead.pending = SingleArrays::of(memory, o.max_slice_frames);
    if (o.input == Input::frames) ahead.tags = memory.device<TagCell>(o.max_slice_frames);
}

/// Room for the records of a slice in which every frame is accepted.
std::uint32_t SliceRecords::room_for(const PipelineOptions& o) {
    const std::uint64_t waiting =
        o.input == Input::singles ? 0 : std::min(o.max_pending_singles, max_waiting);
    const auto singles = static_cast<std::uint32_t>(o.max_slice_frames + waiting);
    const std::uint32_t of_a_kind = o.rules.one_window_each() ? singles / 2 : singles;
    return (o.rules.delay ? 2 * of_a_kind : of_a_kind) + 256;
}

SliceRecords::SliceRecords(const PipelineOptions& o, Memory& memory)
    : room(room_for(o)),
      single_room(o.emit_singles ? o.max_slice_frames : 0),
      packing(RecordPacking::of(o.geometry.crystal_count(), o.rules.window)) {
    totals = memory.device<SearchTotals>(1);
    host_totals = memory.pinned<SearchTotals>(1);
    packed = memory.device<std::byte>(room * packing.record_bytes());
    host_packed = memory.pinned<std::byte>(room * packing.record_bytes());
    host_singles = memory.pinned<Single>(single_room);
    host_sums =
        SumArrays::make(o.geometry, [&](std::size_t bytes) { return memory.pinned<std::byte>(bytes); });
}

/// Usually a tenth of the singles are gammas.
SliceGammas::SliceGammas(const PipelineOptions& o, Memory& memory) : room(o.max_slice_frames / 4) {
    if (o.rules.gammas) host = memory.pinned<Single>(lead + room);
}

}  // namespace petacq::gpu::cuda
