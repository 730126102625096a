// Counts the frames of slices into the spectra of the pipeline, in the threads of the CPU back-end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/spectra.hpp"
#include "gpu/host/frame_cursor.hpp"
#include "gpu/host/host_tables.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"
#include "net/huge_pages.hpp"

namespace petacq::gpu {

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
        return (floods_.size() + energies_.size()) * sizeof(std::uint32_t);
    }

  private:
    const config::Geometry geometry_;
    const bool alone_;
    const std::size_t positions_;  // of a unit
    net::HugeVector<std::uint32_t> floods_;
    net::HugeVector<std::uint32_t> energies_;
};

}  // namespace petacq::gpu
