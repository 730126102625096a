#include "config/factor_spread.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "config/median.hpp"

namespace petacq::config {
namespace {

constexpr double usual_keV = 511;                // NOLINT(readability-identifier-naming): the unit
constexpr double sigmas_of_median = 1 / 0.6745;  // of the absolute values of a normal distribution

/// The factor of the bin in which 511 keV lie; 0 if there is none.
double factor_at_511(const float* factors, std::uint32_t bins) {
    for (std::uint32_t bin = 0; bin < bins; ++bin) {
        const double end = (bin + 1.0) * adc_per_bin * static_cast<double>(factors[bin]);
        if (end >= usual_keV || (bin + 1 == bins && factors[bin] > 0))
            return static_cast<double>(factors[bin]);
    }
    return 0;
}

}  // namespace

double factor_spread(const Calibration& calibration) {
    const std::size_t crystals =
        calibration.bins > 0 ? calibration.energy_factor.size() / calibration.bins : 0;
    std::vector<double> differences;
    double before = 0;
    for (std::size_t i = 0; i < crystals; ++i) {
        const double factor =
            factor_at_511(&calibration.energy_factor[i * calibration.bins], calibration.bins);
        if (before > 0 && factor > 0) differences.push_back(std::abs(std::log(factor / before)));
        before = factor;
    }
    return sigmas_of_median * median(std::move(differences)) / std::numbers::sqrt2;
}

}  // namespace petacq::config
