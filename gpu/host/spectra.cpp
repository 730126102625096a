#include "gpu/host/spectra.hpp"

#include <algorithm>

#include "gpu/histograms.hpp"

namespace petacq::gpu {

static_assert(config::Spectra::energy_bins == SinglesHistograms::energy_bins);
static_assert(config::Spectra::energy_bin_keV == SinglesHistograms::energy_bin_keV);

void UnitCounts::add(std::size_t unit, std::span<const std::uint16_t> cells) {
    const net::MutexLock lock(mutexes_[unit]);
    std::uint8_t* const low = low_.data() + unit * cells_;
    std::uint32_t* const high = high_.data() + unit * cells_;
    for (const std::uint16_t cell : cells) {
        if (++low[cell] == 0) [[unlikely]]
            high[cell] += 256;
    }
}

void UnitCounts::copy(std::size_t unit, std::uint32_t* to) {
    const net::MutexLock lock(mutexes_[unit]);
    for (std::size_t i = unit * cells_; i < (unit + 1) * cells_; ++i)
        *to++ = low_[i] + high_[i];
}

void UnitCounts::clear(std::size_t unit) {
    const net::MutexLock lock(mutexes_[unit]);
    std::fill_n(low_.begin() + static_cast<std::ptrdiff_t>(unit * cells_), cells_, 0);
    std::fill_n(high_.begin() + static_cast<std::ptrdiff_t>(unit * cells_), cells_, 0);
}

void CellLists::flush(std::size_t unit) {
    counts_.add(unit, {cells_.data() + unit * stride, sizes_[unit]});
    sizes_[unit] = 0;
}

HostSpectra::HostSpectra(const config::Geometry& geometry, std::size_t threads)
    : geometry_(geometry),
      floods_(std::size_t{geometry.bdm_count} * geometry.du_count,
              std::size_t{geometry.position_size} * geometry.position_size),
      energies_(floods_.units(), std::size_t{geometry.crystals_per_du()} * config::Spectra::energy_bins) {
    for (std::size_t i = 0; i < threads; ++i)
        threads_.push_back(std::make_unique<Thread>(floods_, energies_));
}

void HostSpectra::take(config::Spectra& out) {
    constexpr std::size_t bins = config::Spectra::energy_bins;
    out.floods.resize(floods_.units() * floods_.cells());
    out.energies.resize(geometry_.crystal_count() * bins);
    UnitSpectra of_unit;
    for (std::uint32_t unit = 0; unit < floods_.units(); ++unit) {
        copy_unit(unit, of_unit);
        std::copy(of_unit.flood.begin(), of_unit.flood.end(),
                  out.floods.begin() + static_cast<std::ptrdiff_t>(unit * floods_.cells()));
        for (std::uint32_t local = 0; local < geometry_.crystals_per_du(); ++local) {
            const std::size_t crystal =
                geometry_.crystal(unit / geometry_.du_count, unit % geometry_.du_count, local);
            std::copy_n(of_unit.energies.begin() + static_cast<std::ptrdiff_t>(local * bins), bins,
                        out.energies.begin() + static_cast<std::ptrdiff_t>(crystal * bins));
        }
        floods_.clear(unit);
        energies_.clear(unit);
    }
}

void HostSpectra::copy_unit(std::uint32_t unit, UnitSpectra& out) {
    for (const auto& thread : threads_) {
        const net::MutexLock lock(thread->mutex);
        thread->lists.floods.flush(unit);
        thread->lists.energies.flush(unit);
    }
    out.flood.resize(floods_.cells());
    floods_.copy(unit, out.flood.data());
    out.energies.resize(energies_.cells());
    energies_.copy(unit, out.energies.data());
}

std::uint64_t HostSpectra::bytes() const {
    std::uint64_t lists = 0;
    for (const auto& thread : threads_) {
        const net::MutexLock lock(thread->mutex);
        lists += thread->lists.floods.bytes() + thread->lists.energies.bytes();
    }
    return floods_.bytes() + energies_.bytes() + lists;
}

}  // namespace petacq::gpu
