#include "gpu/cuda/convert/spectra.hpp"

#include <algorithm>

#include "config/energy_bins.hpp"
#include "gpu/cuda/base/copies.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::size_t bins = config::energy_bins;

void wait(cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "copying spectra to the host");
}

}  // namespace

DeviceSpectra::DeviceSpectra(const PipelineOptions& o, Memory& memory)
    : geometry_(o.geometry), positions_(std::size_t{o.geometry.position_size} * o.geometry.position_size) {
    if (!o.spectra) return;
    flood_count_ = o.geometry.bdm_count * o.geometry.du_count * positions_;
    energy_count_ = o.geometry.crystal_count() * bins;
    floods_ = memory.zeros<std::uint32_t>(flood_count_);
    energies_ = memory.zeros<std::uint32_t>(energy_count_);
}

SpectraArrays DeviceSpectra::arrays(const std::optional<TickRange>& times) const {
    if (!times || times->end <= times->start) return {};
    return {floods_, energies_, times->start, times->end - 1};
}

void DeviceSpectra::take(config::Spectra& out, cudaStream_t stream) {
    out.floods.resize(flood_count_);
    out.energies.resize(energy_count_);
    to_host(out.floods.data(), floods_, flood_count_, stream);
    to_host(out.energies.data(), energies_, energy_count_, stream);
    clear(floods_, flood_count_ * sizeof(std::uint32_t), stream);
    clear(energies_, energy_count_ * sizeof(std::uint32_t), stream);
    wait(stream);
}

void DeviceSpectra::copy_unit(std::uint32_t unit, UnitSpectra& out, cudaStream_t stream) const {
    out.flood.resize(positions_);
    to_host(out.flood.data(), floods_ + unit * positions_, positions_, stream);
    const std::uint32_t crystals = geometry_.crystals_of_unit(unit);
    const auto crystal = [&](std::uint32_t local) {
        return std::size_t{geometry_.crystal(unit / geometry_.du_count, unit % geometry_.du_count, local)};
    };
    out.energies.assign(std::size_t{geometry_.crystals_per_du()} * bins, 0);
    // Runs of crystals whose numbers rise in equal steps, such as those one ring apart, are one copy.
    constexpr std::size_t row = bins * sizeof(std::uint32_t);
    for (std::uint32_t from = 0; from < crystals;) {
        const std::size_t first = crystal(from);
        std::uint32_t end = from + 1;
        const std::size_t step = end < crystals && crystal(end) > first ? crystal(end) - first : 1;
        while (end < crystals && crystal(end) == first + (end - from) * step)
            ++end;
        check(cudaMemcpy2DAsync(out.energies.data() + from * bins, row, energies_ + first * bins, step * row,
                                row, end - from, cudaMemcpyDeviceToHost, stream),
              "cudaMemcpy2DAsync", "copying spectra to the host");
        from = end;
    }
    wait(stream);
}

}  // namespace petacq::gpu::cuda
