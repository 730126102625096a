// What host and device share: sizes of the pieces of work, tables and totals of a slice.
#pragma once

#include <cstdint>

#include "gpu/arithmetic.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

inline constexpr std::uint32_t cell_tile = 2048;     ///< 16-byte cells that a block converts at a time
inline constexpr std::uint32_t single_tile = 2048;   ///< singles that a block looks for pairs in
inline constexpr std::uint32_t super_tiles = 64;     ///< tiles whose exits are composed
inline constexpr std::uint32_t disorder_room = 256;  ///< out-of-order places that are listed one by one

/// Frames of one span, as cells (16 bytes) of the uploaded slice. Cells between spans hold no frames.
struct SpanEntry {
    std::uint32_t first;
    std::uint32_t count;
    std::uint64_t time_low;
    std::uint64_t time_high;
};

/// What conversion found.
struct ConvertTotals {
    std::uint64_t fates[fate_count];
    std::uint64_t max_key;           ///< of the ready singles: time less the base of the slice
    std::uint64_t max_pending_time;  ///< of the pending singles
    std::uint32_t ready;
    std::uint32_t pending;
    std::uint32_t tickets[2];  ///< tiles taken: of the singles that were pending, of the cells
};

/// Index into FindTotals::counts.
enum CountIndex : std::uint32_t {
    count_prompts,
    count_unpaired,
    count_same_crystal,
    count_geometry,
    count_dropped,
    count_oversize,
    count_unused,
    count_reused,
    count_fields
};

/// What became of the ordered singles.
struct FindTotals {
    std::uint64_t prompts;       ///< records
    std::uint64_t delayeds;      ///< records
    std::uint64_t newest_time;   ///< of all ordered singles; 0 when there is none
    std::uint32_t decided;       ///< singles below this index have opened their windows
    std::uint32_t view;          ///< singles that exist for this segment
    std::uint32_t first_anchor;  ///< first single that no earlier group has taken
    std::uint32_t next;          ///< first single that no group has taken
    std::uint64_t counts[count_fields];
    std::uint32_t long_run;   ///< nonzero: equal times were left unordered, nothing was looked for
    std::uint32_t disorders;  ///< records that stand before their predecessor
    std::uint32_t disorder_at[disorder_room];
};

/// Histograms of one slice, added to the totals when the slice is collected.
struct SliceHistograms {
    std::uint32_t* per_crystal;
    std::uint32_t* energy;
    std::uint32_t* temperature_count;
    std::uint64_t* temperature_sum;  ///< signed, in two's complement
};

/// Totals, in the order in which they are stored: per_crystal, energy, temperature_count, temperature_sum.
struct HistogramSizes {
    std::uint32_t crystals = 0;
    std::uint32_t energies = 0;
    std::uint32_t units = 0;
    [[nodiscard]] std::uint32_t total() const { return crystals + energies + 2 * units; }
};

}  // namespace petacq::gpu::cuda
