// Where the frames of a slice go on the device, and what has to be copied to put them there. No CUDA.
//
// The order of frames within a slice does not matter, but every copy takes a few microseconds, and a slice
// consists of pieces of many batches that were received side by side. So spans that lie next to each other in
// memory are placed next to each other, whatever their order in the slice, and copied in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/cuda/base/layout.hpp"
#include "gpu/cuda/slice/span_table.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu::cuda {

/// Spans whose frames are at most this many bytes apart are copied in one piece, including the bytes between
/// them. This is less than a page: bytes between two spans so close lie in a page of one of them.
inline constexpr std::size_t copied_gap = 4080;
static_assert(copied_gap / net::frame_bytes <= SpanRow::max_gap);

/// Memory to be copied to consecutive cells.
struct FrameCopy {
    const std::byte* from = nullptr;
    std::uint32_t cell = 0;
    std::uint32_t cells = 0;
};

/// Plans a slice part by part. Allocates nothing after construction. No thread-safety.
class UploadPlan {
  public:
    /// `gap_room`: most cells of a slice without a frame. `row_room`: most rows of its table. `by_source`:
    /// the rows name the sources of their spans.
    UploadPlan(std::uint32_t gap_room, std::uint32_t row_room, bool by_source);

    /// Starts a slice whose table goes to `table`.
    void start(SpanTable& table);
    /// Places spans behind those of the earlier parts. False: the table has no room; start again.
    [[nodiscard]] bool add(std::span<const FrameSpan> part);
    /// The copies for the latest part. They come in the order of their cells and leave no cell out.
    [[nodiscard]] const std::vector<FrameCopy>& copies() const { return copies_; }
    /// Cells used so far.
    [[nodiscard]] std::uint32_t cells() const { return next_cell_; }

  private:
    /// Consecutive spans of the slice that lie next to each other, and their rows.
    struct Stretch {
        const std::byte* begin;
        const std::byte* end;
        std::uint32_t first_row;
        std::uint32_t rows;
    };

    /// The cells between `end` and a span behind it, if it may be joined.
    [[nodiscard]] bool joins(const std::byte* end, const std::byte* begin, std::uint32_t& gap) const;
    [[nodiscard]] static std::uint32_t gap_in(const FrameSpan& span);
    [[nodiscard]] bool has_room(const FrameSpan& span) const;
    [[nodiscard]] bool gather(const FrameSpan& span);
    [[nodiscard]] bool extend_row(const FrameSpan& span, std::uint32_t source, std::uint32_t gap);
    void place_stretches();

    const std::uint32_t gap_room_;
    const std::uint32_t row_room_;
    const bool by_source_;
    SpanTable* table_ = nullptr;
    std::uint32_t next_cell_ = 0;
    std::uint32_t gaps_ = 0;  ///< cells without a frame so far
    // The part that is being planned.
    std::vector<Stretch> stretches_;
    std::vector<SpanRow> rows_;               ///< `first` counts from the beginning of the stretch
    std::vector<std::uint16_t> tag_sources_;  ///< [row]
    bool full_ = false;                       ///< all spans of the last row have the same number of frames
    std::vector<FrameCopy> copies_;
};

}  // namespace petacq::gpu::cuda
