// Definitions shared by host and device: work sizes, tables and totals of a slice.
#pragma once

#include <cstdint>

#include "gpu/arithmetic.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu::cuda {

inline constexpr std::uint32_t cell_tile = 2048;     ///< 16-byte cells that one block converts
inline constexpr std::uint32_t single_tile = 2048;   ///< singles that one block searches for pairs
inline constexpr std::uint32_t super_tiles = 64;     ///< tiles whose exits are composed into one
inline constexpr std::uint32_t disorder_room = 256;  ///< out-of-order places that can be listed individually

/// The frames of one span, or a part of it, as 16-byte cells of the uploaded slice. Cells between spans hold
/// no frames. Packed, because a slice has one for each datagram, and the bus is the bottleneck.
struct SpanEntry {
    std::uint64_t place;  ///< from the highest bit on: source, count, first
    std::uint64_t time_low;
    std::uint64_t time_high;

    static constexpr std::uint32_t first_bits = 28;
    static constexpr std::uint32_t count_bits = 22;
    static constexpr std::uint32_t source_bits = 64 - first_bits - count_bits;
    static constexpr std::uint32_t most_frames = (1U << count_bits) - 1;

    /// `count` is at most most_frames. `source`: FrameSpan::source.
    PETACQ_HD static SpanEntry of(std::uint32_t first, std::uint32_t count, std::uint32_t source,
                                  std::uint64_t low, std::uint64_t high) {
        return {(std::uint64_t{source} << count_bits | count) << first_bits | first, low, high};
    }
    PETACQ_HD std::uint32_t first() const {
        return static_cast<std::uint32_t>(place) & ((1U << first_bits) - 1);
    }
    PETACQ_HD std::uint32_t count() const {
        return static_cast<std::uint32_t>(place >> first_bits) & most_frames;
    }
    PETACQ_HD std::uint32_t source() const {
        return static_cast<std::uint32_t>(place >> (first_bits + count_bits));
    }
};

/// The totals of conversion.
struct ConvertTotals {
    std::uint64_t fates[fate_count];
    std::uint64_t max_key;           ///< of the ready singles: time minus the base of the slice
    std::uint64_t max_pending_time;  ///< of the pending singles
    std::uint32_t ready;
    std::uint32_t pending;
    std::uint32_t tickets[2];  ///< tiles taken: of the previously pending singles, and of the cells
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
    count_delayed_dropped,
    count_delayed_oversize,
    count_fields
};

/// The totals of the coincidence search.
struct FindTotals {
    std::uint64_t prompts;       ///< records
    std::uint64_t delayeds;      ///< records
    std::uint64_t newest_time;   ///< of all ordered singles; 0 when there are none
    std::uint32_t decided;       ///< singles below this index have opened their windows
    std::uint32_t view;          ///< singles that exist for this segment
    std::uint32_t first_anchor;  ///< first single that no earlier group has taken
    std::uint32_t next;          ///< first single that no group has taken
    std::uint64_t counts[count_fields];
    std::uint32_t long_run;   ///< nonzero: equal times are still unordered, so nothing was searched
    std::uint32_t disorders;  ///< records that precede their predecessor in record order
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
