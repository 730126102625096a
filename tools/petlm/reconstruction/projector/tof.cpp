#include "tools/petlm/reconstruction/projector/tof.hpp"

#include <algorithm>
#include <numbers>

#include "config/base/constants.hpp"

namespace petacq::image {
namespace {

constexpr double cut = 3;  // standard deviations

/// The integral of the standard Gaussian that ends at `cut`, up to t.
double cumulated(double t) {
    const double inside = std::erf(cut / std::numbers::sqrt2);
    return std::clamp(0.5 * (1 + std::erf(t / std::numbers::sqrt2) / inside), 0.0, 1.0);
}

/// The integral of cumulated(), up to t.
double cumulated_twice(double t) {
    if (t <= -cut) return 0;
    if (t >= cut) return t;
    const double inside = std::erf(cut / std::numbers::sqrt2);
    const auto part = [](double at) {
        return at * std::erf(at / std::numbers::sqrt2) +
               std::sqrt(2 / std::numbers::pi) * std::exp(-at * at / 2);
    };
    return 0.5 * (t + cut + (part(t) - part(cut)) / inside);
}

}  // namespace

TofBins TofBins::of(double fwhm_ps, double tick_ps, std::uint32_t window) {
    constexpr double bins_in_fwhm = 3;
    constexpr double most_bins = 30'000;  // numbers of 16 bits
    const double ticks = std::max(fwhm_ps / tick_ps / bins_in_fwhm, 2.0 * window / most_bins);
    // Odd, so that the bins are the same if a and b change places.
    return {2 * static_cast<std::uint32_t>(std::min(ticks / 2, 1e9)) + 1, window, tick_ps, fwhm_ps};
}

std::int16_t TofBins::bin(std::int64_t difference) const {
    const std::int64_t from = difference + ticks / 2;
    return static_cast<std::int16_t>(from >= 0 ? from / ticks : -((ticks - 1 - from) / ticks));
}

double TofBins::share_of_window(std::int16_t bin) const {
    const std::int64_t first = std::int64_t{bin} * ticks - ticks / 2;
    const std::int64_t most = window;
    const std::int64_t inside =
        std::min<std::int64_t>(first + ticks - 1, most) - std::max<std::int64_t>(first, -most) + 1;
    return static_cast<double>(std::max<std::int64_t>(inside, 0)) / (2.0 * static_cast<double>(most) + 1);
}

double TofBins::bin_mm() const {
    return config::light_mm_per_ps * ticks * tick_ps / 2;
}

double TofBins::sigma_mm() const {
    return config::light_mm_per_ps * fwhm_ps / 2 / config::fwhm_per_sigma;
}

double TofBins::chance(double distance) const {
    const double half = bin_mm() / 2;
    return cumulated((half + distance) / sigma_mm()) - cumulated((distance - half) / sigma_mm());
}

double TofBins::mean_chance(double from, double to) const {
    const double half = bin_mm() / 2;
    const auto up_to = [&](double distance) {
        return cumulated_twice((distance + half) / sigma_mm()) -
               cumulated_twice((distance - half) / sigma_mm());
    };
    return to > from ? (up_to(to) - up_to(from)) * sigma_mm() / (to - from) : chance(from);
}

TofTable::TofTable(const TofBins& bins) {
    if (!bins.used()) return;
    bin_mm = bins.bin_mm();
    reach_mm = cut * bins.sigma_mm() + bin_mm / 2;
    for (int i = 0; i <= TofWeights::intervals; ++i)
        nodes.push_back(static_cast<float>(bins.chance(reach_mm * i / TofWeights::intervals)));
}

TofWeights TofTable::weights(const float* at) const {
    if (nodes.empty()) return {};
    return {at, static_cast<float>(TofWeights::intervals / reach_mm), reach_mm, bin_mm};
}

}  // namespace petacq::image
