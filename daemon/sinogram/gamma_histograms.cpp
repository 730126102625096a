#include "daemon/sinogram/gamma_histograms.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sinogram {

namespace {

using Histogram = GammaHistograms::Histogram;

Histogram histogram_of(double from, double to) {
    const double bin = std::max(1.0, std::ceil((to - from) / GammaHistograms::most_bins));
    const auto bins = static_cast<std::size_t>(std::max(1.0, std::ceil((to - from) / bin)));
    return {from, to, bin, std::vector<std::uint64_t>(bins), std::vector<std::uint64_t>(bins)};
}

/// The last value is counted in the last bin.
void add_to(Histogram& histogram, double value, gpu::ThirdPhoton third) {
    auto& counts = third == gpu::ThirdPhoton::delayed ? histogram.delayed : histogram.triples;
    if (value < histogram.from || value > histogram.to) return;
    const auto place = static_cast<std::size_t>((value - histogram.from) / histogram.bin);
    ++counts[std::min(place, counts.size() - 1)];
}

void clear_counts(Histogram& histogram) {
    std::fill(histogram.triples.begin(), histogram.triples.end(), 0);
    std::fill(histogram.delayed.begin(), histogram.delayed.end(), 0);
}

}  // namespace

GammaHistograms::GammaHistograms(const config::Gammas& gammas)
    : times_(histogram_of(-static_cast<double>(gammas.after_ticks), gammas.before_ticks)),
      // Energies are compared in this precision.
      energies_(histogram_of(static_cast<float>(gammas.lower_keV), static_cast<float>(gammas.upper_keV))) {}

void GammaHistograms::add(std::span<const gpu::Triple> triples) {
    for (const gpu::Triple& triple : triples) {
        if (triple.pair.kind != gpu::Kind::prompt) continue;
        add_to(times_, (0.5 * triple.pair.dt) - triple.gamma_dt, triple.third);
        add_to(energies_, static_cast<double>(triple.gamma_energy), triple.third);
    }
}

void GammaHistograms::clear() {
    clear_counts(times_);
    clear_counts(energies_);
}

}  // namespace petacq::sinogram
