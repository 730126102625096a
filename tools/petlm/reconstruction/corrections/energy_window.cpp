#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/base/constants.hpp"

namespace petacq::corrections {
namespace {

using config::fwhm_per_sigma;
constexpr std::uint64_t min_count = 100;
constexpr double peak_sigmas = 2.5;  // half the width of the photopeak
constexpr double near_sigmas = 1.5;
constexpr double near_variance = 0.5515;  // of a normal distribution within these, divided by that of all
constexpr double least_resolution = 0.01;
constexpr double largest_resolution = 0.5;

}  // namespace

double EnergyWindow::below(double limit, double energy) const {
    const double width = resolution / fwhm_per_sigma * std::sqrt(photopeak * std::max(energy, 1e-3));
    return 0.5 * (1 + std::erf((limit - energy) / (width * std::numbers::sqrt2)));
}

double EnergyWindow::photopeak_begins() const {
    return photopeak * (1 - peak_sigmas * resolution / fwhm_per_sigma);
}

EnergyWindow PhotopeakWidth::window(const std::optional<config::Energy>& rule) const {
    EnergyWindow out;
    if (rule) {
        out.lower = rule->filter ? rule->lower_keV : 0;
        out.upper = rule->filter ? rule->upper_keV : 2 * photopeak;
    }
    if (count_ >= min_count) {
        const double sigma = std::sqrt(squares_ / static_cast<double>(count_));
        out.resolution = std::clamp(fwhm_per_sigma * sigma / photopeak, least_resolution, largest_resolution);
    }
    const auto sum = [&](double from, double to) {
        const auto end = std::min(static_cast<std::size_t>(std::max(to, 0.0)), spectrum_.size());
        std::uint64_t counts = 0;
        for (auto i = static_cast<std::size_t>(std::max(from, 0.0)); i < end; ++i)
            counts += spectrum_[i];
        return static_cast<double>(counts);
    };
    const double all = sum(out.lower, out.upper);
    if (all >= min_count) out.low_share = sum(out.lower, out.photopeak_begins()) / all;
    return out;
}

double PhotopeakWidth::resolution_near_peak() const {
    constexpr int rounds = 30;  // each takes away more than a third of what is too much
    double resolution = window({}).resolution;
    for (int round = 0; round < rounds; ++round) {
        const double end = near_sigmas * resolution / fwhm_per_sigma * photopeak;
        double count = 0;
        double squares = 0;
        for (std::size_t i = 0; static_cast<double>(i) < end; ++i) {
            const std::size_t cell = static_cast<std::size_t>(photopeak) + i;
            if (cell >= spectrum_.size()) break;
            // Of the last keV a part.
            const double above = static_cast<double>(i) + 0.5;
            const double part = std::min(1.0, end - static_cast<double>(i));
            count += part * static_cast<double>(spectrum_[cell]);
            squares += part * above * above * static_cast<double>(spectrum_[cell]);
        }
        if (count < static_cast<double>(min_count)) break;
        resolution = std::clamp(fwhm_per_sigma * std::sqrt(squares / count / near_variance) / photopeak,
                                least_resolution, largest_resolution);
    }
    return resolution;
}

}  // namespace petacq::corrections
