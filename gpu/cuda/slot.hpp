// The memory that one slice needs between submission and collection.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/layout.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Spans whose frames are at most this many bytes apart are copied in one piece, including the bytes between
/// them: two spans this close lie in one allocation.
inline constexpr std::size_t copied_gap = 64;
/// Larger pieces are copied in parts, so that the first part travels while the table is still being built.
/// Smaller parts would waste time on the bus: each copy costs a few microseconds.
inline constexpr std::size_t copied_piece = std::size_t{32} << 20;

struct Slot {
    /// Takes its memory from `memory`. With Purpose::plan the slot cannot be used.
    Slot(const PipelineOptions& options, Memory& memory);

    Input input = Input::frames;
    std::vector<ModuleSet> sources;
    HistogramSizes histogram_sizes;
    std::uint32_t cell_room = 0;
    std::uint32_t frame_room = 0;
    std::uint32_t span_room = 0;
    std::uint32_t record_room = 0;
    std::uint32_t single_room = 0;

    net::FrameWords* cells = nullptr;
    // Both tables in one piece, for one copy: tile_first, then spans.
    std::byte* table = nullptr;
    std::byte* host_table = nullptr;
    std::size_t table_head = 0;  // bytes of tile_first
    SpanEntry* spans = nullptr;
    std::uint32_t* tile_first = nullptr;
    SpanEntry* host_spans = nullptr;
    std::uint32_t* host_tile_first = nullptr;
    std::uint32_t* histogram_memory = nullptr;
    std::size_t histogram_bytes = 0;
    SliceHistograms histograms{};
    ConvertTotals* converted = nullptr;
    ConvertTotals* host_converted = nullptr;
    FindTotals* found = nullptr;
    FindTotals* host_found = nullptr;
    Coincidence* records = nullptr;
    Coincidence* host_records = nullptr;
    Single* host_singles = nullptr;

    // The slice.
    std::uint64_t id = 0;
    std::uint64_t watermark = 0;
    std::optional<std::uint64_t> close_at;
    std::uint32_t frames = 0;
    std::uint32_t cell_count = 0;
    std::uint32_t span_count = 0;
    std::uint64_t base = 0;     // subtracted from the times of its ready singles
    std::uint64_t horizon = 0;  // singles below it are decided

    // The result.
    std::uint32_t record_count = 0;         // in host_records
    std::uint32_t single_count = 0;         // in host_singles
    std::vector<Coincidence> many_records;  // used instead when there are more than host_records can hold
    std::vector<Single> many_singles;
    SliceResult result;

    [[nodiscard]] bool everything() const { return close_at && *close_at == UINT64_MAX; }
};

/// Copies the frames of the spans and the table of their positions to the slot, asynchronously for frames in
/// pinned memory. Very many spans of few frames take longer, because the host packs them first. Throws
/// std::invalid_argument when the frames exceed the slot.
void upload(std::span<const FrameSpan> spans, Slot& slot, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
