// The spectra of the pipeline on the CPU: frames in the threads of the back-end, counts in tables of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/spectra.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"
#include "net/huge_pages.hpp"
#include "net/mutex.hpp"

namespace petacq::gpu {

/// Counts in cells, of which each detector unit has as many. They are added to bytes, of which those of one
/// unit fit a cache; a byte that is full goes on to the whole count. Any thread may call any function.
class UnitCounts {
  public:
    /// `cells` of a unit, at most 65536.
    UnitCounts(std::size_t units, std::size_t cells)
        : cells_(cells), low_(units * cells), high_(units * cells), mutexes_(units) {}

    /// One more in each of these cells of the unit.
    void add(std::size_t unit, std::span<const std::uint16_t> cells);
    void copy(std::size_t unit, std::uint32_t* to);
    void clear(std::size_t unit);
    [[nodiscard]] std::size_t units() const { return mutexes_.size(); }
    [[nodiscard]] std::size_t cells() const { return cells_; }
    [[nodiscard]] std::uint64_t bytes() const {
        return low_.size() * (sizeof(std::uint8_t) + sizeof(std::uint32_t));
    }

  private:
    const std::size_t cells_;
    // [unit][cell]
    net::HugeVector<std::uint8_t> low_;
    net::HugeVector<std::uint32_t> high_;
    std::vector<net::Mutex> mutexes_;  // [unit]
};

/// The cells that one thread has found and not yet added to the counts: a list for each unit, which is added
/// as a whole. So the counts of a unit come into the cache once for thousands of frames; one by one, each
/// frame would wait for memory.
class CellLists {
  public:
    static constexpr std::uint32_t most_cells = 4096;  ///< of a unit

    explicit CellLists(UnitCounts& counts)
        : counts_(counts), cells_(counts.units() * stride), sizes_(counts.units()) {}

    /// `counts`: whether the cell counts at all; without a branch, since chance may decide.
    void append(std::size_t unit, std::uint16_t cell, bool counts) {
        const std::uint32_t size = sizes_[unit];
        cells_[unit * stride + size] = cell;
        sizes_[unit] = size + (counts ? 1 : 0);
        if (sizes_[unit] == most_cells) [[unlikely]]
            flush(unit);
    }
    void flush(std::size_t unit);
    [[nodiscard]] std::uint64_t bytes() const { return cells_.size() * sizeof cells_[0]; }

  private:
    // The lists grow alike. A line of a cache apart, their ends do not all fall into the same set of a cache.
    static constexpr std::size_t stride = most_cells + 64 / sizeof(std::uint16_t);

    UnitCounts& counts_;
    net::HugeVector<std::uint16_t> cells_;  // [unit][stride]
    std::vector<std::uint32_t> sizes_;      // [unit]
};

/// Where a thread counts the frames that it converts.
struct SpectraLists {
    CellLists floods;    ///< cell x + y * position_size
    CellLists energies;  ///< cell local crystal * config::Spectra::energy_bins + bin
};

class HostSpectra {
  public:
    HostSpectra(const config::Geometry& geometry, std::size_t threads);

    /// Calls convert(lists) with the lists of this thread.
    template <class Convert>
    auto count(std::size_t thread, Convert convert) {
        Thread& own = *threads_[thread];
        const net::MutexLock lock(own.mutex);
        return convert(own.lists);
    }
    /// Pipeline::take_spectra(). REQUIRES: no thread counts.
    void take(config::Spectra& out);
    /// Pipeline::unit_spectra(). Threads may count meanwhile.
    void copy_unit(std::uint32_t unit, UnitSpectra& out);
    [[nodiscard]] std::uint64_t bytes() const;

  private:
    struct Thread {
        Thread(UnitCounts& floods, UnitCounts& energies) : lists{CellLists(floods), CellLists(energies)} {}
        net::Mutex mutex;
        SpectraLists lists PETACQ_GUARDED_BY(mutex);
    };
    const config::Geometry geometry_;
    UnitCounts floods_;
    UnitCounts energies_;
    std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace petacq::gpu
