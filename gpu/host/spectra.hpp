// Counts the frames of slices into the spectra of the pipeline, in the threads of the CPU back-end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "config/spectra.hpp"
#include "gpu/host/frame_cursor.hpp"
#include "gpu/host/host_tables.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"
#include "net/huge_pages.hpp"

namespace petacq::gpu {

/// Counts of one table. They are added to bytes, which lie closer together than whole counts, and so more
/// often in a cache; a byte that is full goes on to the whole count.
class SpectraTable {
  public:
    explicit SpectraTable(std::size_t size) : low_(size), high_(size) {}

    void prefetch(std::size_t at) const { __builtin_prefetch(low_.data() + at, 1); }
    /// `alone`: no other thread counts, but one may read.
    template <bool alone>
    void count(std::size_t at) {
        const std::atomic_ref<std::uint8_t> low(low_[at]);
        std::uint8_t before = 0;
        if constexpr (alone) {
            before = low.load(std::memory_order_relaxed);
            low.store(static_cast<std::uint8_t>(before + 1), std::memory_order_relaxed);
        } else {
            before = low.fetch_add(1, std::memory_order_relaxed);
        }
        if (before == UINT8_MAX) [[unlikely]]
            std::atomic_ref<std::uint32_t>(high_[at]).fetch_add(256, std::memory_order_relaxed);
    }
    /// Copies counts, while threads may count: one of them may be too low by 256 for an instant.
    void copy(std::size_t from, std::size_t count, std::uint32_t* to);
    /// Starts again. REQUIRES: no thread counts.
    void clear();
    [[nodiscard]] std::size_t size() const { return low_.size(); }

  private:
    net::HugeVector<std::uint8_t> low_;
    net::HugeVector<std::uint32_t> high_;
};

/// All threads count in the same tables, which are large. This is a pass of its own over frames that are in
/// the cache, so that it costs nothing when nobody asks for spectra.
class HostSpectra {
  public:
    /// `alone`: only one thread counts.
    HostSpectra(const config::Geometry& geometry, bool alone)
        : geometry_(geometry),
          alone_(alone),
          positions_(std::size_t{geometry.position_size} * geometry.position_size),
          floods_(geometry.bdm_count * geometry.du_count * positions_),
          energies_(std::size_t{geometry.crystal_count()} * config::Spectra::energy_bins) {}

    /// Counts the next `frames` frames, of those whose raw time lies in `times`. Any thread.
    void count(FrameCursor cursor, std::uint64_t frames, const TickRange& times, const HostTables& tables);
    /// Pipeline::take_spectra(). REQUIRES: no thread counts.
    void take(config::Spectra& out);
    /// Pipeline::unit_spectra(). Threads may count meanwhile.
    void copy_unit(std::uint32_t unit, UnitSpectra& out);
    [[nodiscard]] std::uint64_t bytes() const {
        return (floods_.size() + energies_.size()) * (sizeof(std::uint32_t) + sizeof(std::uint8_t));
    }

  private:
    const config::Geometry geometry_;
    const bool alone_;
    const std::size_t positions_;  // of a unit
    SpectraTable floods_;
    SpectraTable energies_;
};

}  // namespace petacq::gpu
