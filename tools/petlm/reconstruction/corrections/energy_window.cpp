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
        out.resolution = std::clamp(fwhm_per_sigma * sigma / photopeak, 0.01, 0.5);
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

}  // namespace petacq::corrections
