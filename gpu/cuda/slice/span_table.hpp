// The table of the spans of a slice, as the host fills it.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/layout.hpp"

namespace petacq::gpu::cuda {

/// The table that tells the device which cells hold frames. Owns no memory.
struct SpanTable {
    SpanRow* rows = nullptr;
    std::uint32_t* tile_first = nullptr;   ///< [tiles + 1] the row in which a tile of cells starts
    std::uint16_t* tag_sources = nullptr;  ///< [row] FrameSpan::tag_source; the device does not need it
    std::uint32_t row_count = 0;
    std::uint32_t tile_count = 0;

    /// Rows come in the order of their cells; the first one starts at cell 0.
    void enter(const SpanRow& row, std::uint16_t tag_source) {
        fill_tiles_to(row.first);
        tag_sources[row_count] = tag_source;
        rows[row_count++] = row;
    }
    /// No more rows; the slice has `cells` cells.
    void finish(std::uint32_t cells) {
        if (row_count > 0) fill_tiles_to((cells + cell_tile - 1) / cell_tile * cell_tile + 1);
    }

  private:
    /// Tiles that start before `cell` start in the last row.
    void fill_tiles_to(std::uint32_t cell) {
        while (std::uint64_t{tile_count} * cell_tile < cell)
            tile_first[tile_count++] = row_count - 1;
    }
};

}  // namespace petacq::gpu::cuda
