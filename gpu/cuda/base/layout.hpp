// Definitions shared by host and device: work sizes, tables and totals of a slice.
#pragma once

#include <cstdint>

#include "config/energy_bins.hpp"
#include "config/scanner/geometry.hpp"
#include "gpu/base/counters.hpp"
#include "gpu/base/records.hpp"
#include "gpu/histograms.hpp"
#include "gpu/rules/conversion.hpp"

namespace petacq::gpu::cuda {

inline constexpr std::uint32_t cell_tile = 2048;     ///< 16-byte cells that one block converts
inline constexpr std::uint32_t single_tile = 2048;   ///< singles that one block searches for pairs
inline constexpr std::uint32_t super_tiles = 64;     ///< tiles whose exits are composed into one
inline constexpr std::uint32_t disorder_room = 256;  ///< out-of-order places that can be listed individually

/// Spans of one slice that follow each other on the device: `count` frames each, the last one possibly fewer,
/// with the same number of cells between them that hold no frames. Datagrams of one read lie like this, so
/// that one row stands for all of them and the table hardly loads the bus.
struct alignas(16) SpanRow {
    std::uint32_t first;  ///< the first frame, as 16-byte cells of the uploaded slice
    std::uint32_t cells;  ///< from the first frame to the last
    std::uint32_t count;  ///< frames in a span
    std::uint32_t shape;  ///< source << gap_bits | gap
    std::uint64_t time_low;
    std::uint64_t time_high;

    static constexpr std::uint32_t gap_bits = 8;
    static constexpr std::uint32_t max_gap = (1U << gap_bits) - 1;
    static constexpr std::uint32_t max_source = (1U << (32 - gap_bits)) - 1;

    PETACQ_HD std::uint32_t gap() const { return shape & max_gap; }  ///< cells between two spans
    PETACQ_HD std::uint32_t source() const { return shape >> gap_bits; }
    /// Whether a cell of the slice holds a frame of this row. The cell is not before the first.
    PETACQ_HD bool has(std::uint32_t cell) const {
        const std::uint32_t offset = cell - first;
        return offset < cells && offset % (count + gap()) < count;
    }
};
static_assert(sizeof(SpanRow) == 32);

/// A tag frame, as conversion finds it.
struct TagCell {
    net::FrameWords frame;
    std::uint64_t cell;  ///< of the uploaded slice; leaves no padding, which would go down unwritten
};

/// The totals of conversion. launch_fetch() copies them.
struct alignas(16) ConvertTotals {
    std::uint64_t fates[fate_count];
    std::uint64_t max_key;           ///< of the ready singles and gammas: time minus the base of the slice
    std::uint64_t max_pending_time;  ///< of the pending singles and gammas
    std::uint32_t ready;
    std::uint32_t pending;     ///< singles and gammas
    std::uint32_t tickets[2];  ///< tiles taken: of the previously pending singles, and of the cells
    std::uint32_t tags;        ///< tag frames
    std::uint32_t gammas;      ///< ready, too, and not among `ready`
};

/// Index into SearchTotals::counts: the counters of the singles. The search fills in those of pairs, groups
/// and multiples.
enum CountIndex : std::uint32_t {
#define PETACQ_COUNT_INDEX(section, name, ...) count_##name,
    PETACQ_SINGLE_COUNTERS(PETACQ_COUNT_INDEX)
#undef PETACQ_COUNT_INDEX
        count_fields
};

/// The totals of the coincidence search.
struct SearchTotals {
    std::uint64_t prompts;       ///< records
    std::uint64_t delayeds;      ///< records
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
    static HistogramSizes of(const config::Geometry& g) {
        return {g.crystal_count(), g.bdm_count * config::energy_bins, g.bdm_count * g.du_count};
    }
    [[nodiscard]] std::uint32_t total() const { return crystals + energies + 2 * units; }
};

}  // namespace petacq::gpu::cuda
