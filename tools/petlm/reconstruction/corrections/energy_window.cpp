#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/base/constants.hpp"

namespace petacq::corrections {
namespace {

using config::fwhm_per_sigma;
constexpr std::uint64_t min_count = 100;

}  // namespace

double EnergyWindow::accepted(double energy) const {
    const double width = resolution / fwhm_per_sigma * std::sqrt(photopeak * std::max(energy, 1e-3));
    const auto below = [&](double limit) {
        return 0.5 * (1 + std::erf((limit - energy) / (width * std::numbers::sqrt2)));
    };
    return below(upper) - below(lower);
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
    return out;
}

}  // namespace petacq::corrections
