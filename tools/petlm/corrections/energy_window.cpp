#include "tools/petlm/corrections/energy_window.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace petacq::corrections {
namespace {

constexpr double fwhm_per_sigma = 2.354820045030949;
constexpr std::uint64_t least_count = 100;

}  // namespace

double EnergyWindow::accepted(double energy) const {
    const double width = resolution / fwhm_per_sigma * std::sqrt(photopeak * std::max(energy, 1e-3));
    const auto below = [&](double limit) {
        return 0.5 * (1 + std::erf((limit - energy) / (width * std::numbers::sqrt2)));
    };
    return below(upper) - below(lower);
}

EnergyWindow PhotopeakWidth::window(const nlohmann::json& run) const {
    EnergyWindow out;
    const auto number = [&](const char* pointer, double& value) {
        const nlohmann::json::json_pointer at(pointer);
        if (run.is_object() && run.contains(at) && run[at].is_number()) value = run[at].get<double>();
    };
    number("/configuration/energy/lower_keV", out.lower);
    number("/configuration/energy/upper_keV", out.upper);
    if (count_ >= least_count) {
        const double sigma = std::sqrt(squares_ / static_cast<double>(count_));
        out.resolution = std::clamp(fwhm_per_sigma * sigma / photopeak, 0.01, 0.5);
    }
    return out;
}

}  // namespace petacq::corrections
