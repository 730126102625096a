// What one slice needs for itself between its submission and its collection.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/layout.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Spans whose frames are at most this many bytes apart are copied in one piece, with what lies between them:
/// two spans so near to each other lie in one allocation.
inline constexpr std::size_t copied_gap = 64;
/// Pieces larger than this are copied in parts, so that the first is under way while the table is still made.
/// Not smaller: each copy costs the bus a few microseconds.
inline constexpr std::size_t copied_piece = std::size_t{32} << 20;

struct Slot {
    /// Takes its memory from `memory`; a planning one makes a slot that cannot be used.
    Slot(const PipelineOptions& options, Memory& memory);

    Input input = Input::frames;
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
    std::uint64_t base = 0;     // of the times of its ready singles
    std::uint64_t horizon = 0;  // singles below it are decided

    // The result.
    std::uint32_t record_count = 0;         // in host_records
    std::uint32_t single_count = 0;         // in host_singles
    std::vector<Coincidence> many_records;  // instead, when they are more than there is room for
    std::vector<Single> many_singles;
    SliceResult result;

    [[nodiscard]] bool everything() const { return close_at && *close_at == UINT64_MAX; }
};

/// Copies the frames of the spans to the slot, asynchronously where they lie in pinned memory, with the table
/// that says where they are. Very many spans of few frames take longer: they are packed here. Throws
/// std::invalid_argument when they are more than the slot has room for.
void upload(std::span<const FrameSpan> spans, Slot& slot, cudaStream_t stream);

}  // namespace petacq::gpu::cuda
