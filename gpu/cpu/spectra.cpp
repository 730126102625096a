#include "gpu/cpu/spectra.hpp"

#include <algorithm>

#include "config/energy_bins.hpp"
#include "gpu/histograms.hpp"

namespace petacq::gpu {

void UnitCounts::add(std::uint32_t unit, std::span<const CountedFrame> frames) {
    const net::MutexLock lock(mutexes_[unit]);
    const CountArrays::Unit floods = floods_.unit(unit);
    const CountArrays::Unit energies = energies_.unit(unit);
    floods.fetch();
    energies.fetch();
    for (const CountedFrame& frame : frames) {
        floods.add(frame.flood);
        energies.add(frame.energy);
    }
}

void UnitCounts::CountArrays::copy(std::size_t number, std::span<std::uint32_t> to) const {
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = low_[number * cells_ + i] + high_[number * cells_ + i];
}

void UnitCounts::CountArrays::clear(std::size_t number) {
    std::fill_n(unit(number).low, cells_, 0);
    std::fill_n(unit(number).high, cells_, 0);
}

void UnitCounts::copy(std::uint32_t unit, UnitSpectra& to) {
    const net::MutexLock lock(mutexes_[unit]);
    floods_.copy(unit, to.flood);
    energies_.copy(unit, to.energies);
}

void UnitCounts::clear(std::uint32_t unit) {
    const net::MutexLock lock(mutexes_[unit]);
    floods_.clear(unit);
    energies_.clear(unit);
}

void FrameLists::flush(std::uint32_t unit) {
    counts_.add(unit, {frames_.data() + unit * stride, sizes_[unit]});
    sizes_[unit] = 0;
}

void FrameLists::flush_full() {
    for (std::uint32_t unit = 0; unit < sizes_.size(); ++unit) {
        if (sizes_[unit] >= max_frames) flush(unit);
    }
}

HostSpectra::HostSpectra(const config::Geometry& geometry, std::size_t threads)
    : geometry_(geometry), counts_(geometry) {
    for (std::size_t i = 0; i < threads; ++i)
        threads_.push_back(std::make_unique<Thread>(counts_));
}

void HostSpectra::take(config::Spectra& out) {
    constexpr std::size_t bins = config::energy_bins;
    const std::size_t positions = std::size_t{geometry_.position_size} * geometry_.position_size;
    out.floods.resize(counts_.units() * positions);
    out.energies.resize(geometry_.crystal_count() * bins);
    UnitSpectra of_unit;
    for (std::uint32_t unit = 0; unit < counts_.units(); ++unit) {
        copy_unit(unit, of_unit);
        std::copy(of_unit.flood.begin(), of_unit.flood.end(),
                  out.floods.begin() + static_cast<std::ptrdiff_t>(unit * positions));
        for (std::uint32_t local = 0; local < geometry_.crystals_of_unit(unit); ++local) {
            const std::size_t crystal =
                geometry_.crystal(unit / geometry_.du_count, unit % geometry_.du_count, local);
            std::copy_n(of_unit.energies.begin() + static_cast<std::ptrdiff_t>(local * bins), bins,
                        out.energies.begin() + static_cast<std::ptrdiff_t>(crystal * bins));
        }
        counts_.clear(unit);
    }
}

void HostSpectra::copy_unit(std::uint32_t unit, UnitSpectra& out) {
    for (const auto& thread : threads_) {
        const net::MutexLock lock(thread->mutex);
        thread->lists.flush(unit);
    }
    out.flood.resize(std::size_t{geometry_.position_size} * geometry_.position_size);
    out.energies.resize(std::size_t{geometry_.crystals_per_du()} * config::energy_bins);
    counts_.copy(unit, out);
}

std::uint64_t HostSpectra::bytes() const {
    std::uint64_t lists = 0;
    for (const auto& thread : threads_) {
        const net::MutexLock lock(thread->mutex);
        lists += thread->lists.bytes();
    }
    return counts_.bytes() + lists;
}

}  // namespace petacq::gpu
