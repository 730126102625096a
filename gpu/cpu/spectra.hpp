// The spectra of the pipeline on the CPU: frames in the threads of the back-end, counts in tables of all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/spectra.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"
#include "net/base/huge_pages.hpp"
#include "net/base/mutex.hpp"

namespace petacq::gpu {

inline std::size_t unit_count(const config::Geometry& geometry) {
    return std::size_t{geometry.bdm_count} * geometry.du_count;
}

/// A frame that counts: its cell in the flood map of its unit (x + y * position_size) and its cell in the
/// energy spectra of that unit (local crystal * config::energy_bins + bin), of which a unit with many
/// crystals keeps the bits above the lowest 16 apart. A frame outside any crystal has a local crystal beyond
/// the last one, and any bin.
struct CountedFrame {
    std::uint16_t flood;
    std::uint16_t energy;
};

/// Local crystals with an energy spectrum: those of a unit and, for frames outside them, at least one more.
inline std::uint32_t counted_crystals(const config::Geometry& geometry) {
    return std::max(geometry.crystals_per_du() + 1, 256U);
}

/// The counts of all detector units. They are added to bytes, of which those of one unit fit a cache; a byte
/// that is full is carried to the whole count. Any thread may call any function.
class UnitCounts {
  public:
    explicit UnitCounts(const config::Geometry& geometry)
        : floods_(unit_count(geometry), std::size_t{geometry.position_size} * geometry.position_size),
          energies_(unit_count(geometry), std::size_t{counted_crystals(geometry)} * config::energy_bins),
          mutexes_(unit_count(geometry)) {}

    /// `energy_high`: of each frame the bits of its cell above the lowest 16; empty: all are 0.
    void add(std::uint32_t unit, std::span<const CountedFrame> frames,
             std::span<const std::uint8_t> energy_high);
    /// Copies the counts of the unit to `to`, as many as fit.
    void copy(std::uint32_t unit, UnitSpectra& to);
    void clear(std::uint32_t unit);
    [[nodiscard]] std::uint32_t units() const { return static_cast<std::uint32_t>(mutexes_.size()); }
    [[nodiscard]] std::uint64_t bytes() const { return floods_.bytes() + energies_.bytes(); }

  private:
    class CountArrays {
      public:
        CountArrays(std::size_t units, std::size_t cells)
            : cells_(cells), low_(units * cells), high_(units * cells) {}
        struct Unit {
            std::uint8_t* low;
            std::uint32_t* high;
            std::size_t cells;

            /// Reads the bytes in their order, which the processor foresees, into the cache. In the order of
            /// the frames, each line would be waited for.
            void fetch() const {
                for (std::size_t cell = 0; cell < cells; cell += 64)
                    (void)*static_cast<const volatile std::uint8_t*>(low + cell);
            }

            void add(std::size_t cell) const {
                if (++low[cell] == 0) [[unlikely]]
                    high[cell] += 256;
            }
        };
        Unit unit(std::size_t number) {
            return {low_.data() + number * cells_, high_.data() + number * cells_, cells_};
        }
        void copy(std::size_t number, std::span<std::uint32_t> to) const;
        void clear(std::size_t number);
        [[nodiscard]] std::uint64_t bytes() const { return low_.size() + high_.size() * sizeof high_[0]; }

      private:
        std::size_t cells_;  // of a unit
        // [unit][cell]
        net::HugeVector<std::uint8_t> low_;
        net::HugeVector<std::uint32_t> high_;
    };
    CountArrays floods_;
    CountArrays energies_;
    std::vector<net::Mutex> mutexes_;  // [unit]
};

/// The frames that one thread has found and not yet counted: a list for each unit, which is counted as a
/// whole. So the counts of a unit come into the cache once for thousands of frames; one by one, each frame
/// would wait for memory.
class FrameLists {
  public:
    static constexpr std::uint32_t block = 32;  ///< frames that may follow before flush_full()

    FrameLists(const config::Geometry& geometry, UnitCounts& counts)
        : counts_(counts),
          max_frames_(std::clamp(all_frames / counts.units(), block, 4096U)),
          stride_(max_frames_ + block + line),
          frames_(std::size_t{counts.units()} * stride_),
          energy_high_(config::has_wide_positions(geometry) ? frames_.size() : 0),
          sizes_(counts.units()) {}

    /// `counts`: whether the frame counts at all; without a branch, since chance may decide. Returns whether
    /// the list is full.
    bool append(std::uint32_t unit, CountedFrame frame, bool counts) {
        const std::uint32_t size = sizes_[unit];
        CountedFrame* const end = frames_.data() + std::size_t{unit} * stride_ + size;
        *end = frame;
        __builtin_prefetch(end + line, 1);  // each list has a line of the cache of its own
        sizes_[unit] = size + (counts ? 1 : 0);
        return size >= max_frames_;
    }
    /// The same for units with more than 256 crystals.
    bool append(std::uint32_t unit, std::uint32_t flood, std::uint32_t energy, bool counts) {
        energy_high_[std::size_t{unit} * stride_ + sizes_[unit]] = static_cast<std::uint8_t>(energy >> 16);
        return append(unit, {static_cast<std::uint16_t>(flood), static_cast<std::uint16_t>(energy)}, counts);
    }
    void flush(std::uint32_t unit);
    void flush_full();
    [[nodiscard]] std::uint64_t bytes() const {
        return frames_.size() * sizeof frames_[0] + energy_high_.size();
    }

  private:
    /// In the lists of a thread; with many units they are shorter.
    static constexpr std::uint32_t all_frames = 16U << 20;
    // The lists grow alike. A line of a cache apart, their ends do not all fall into the same set of it.
    static constexpr std::size_t line = 64 / sizeof(CountedFrame);

    UnitCounts& counts_;
    const std::uint32_t max_frames_;  // of a unit, before a block
    const std::size_t stride_;
    net::HugeVector<CountedFrame> frames_;  // [unit][stride]
    // [unit][stride] the bits of the energies above the lowest 16; empty: there are none
    std::vector<std::uint8_t> energy_high_;
    std::vector<std::uint32_t> sizes_;  // [unit]
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
        Thread(const config::Geometry& geometry, UnitCounts& counts) : lists(geometry, counts) {}
        net::Mutex mutex;
        FrameLists lists PETACQ_GUARDED_BY(mutex);
    };
    const config::Geometry geometry_;
    UnitCounts counts_;
    std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace petacq::gpu
