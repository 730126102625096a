#include "tools/petsim/detector/temperature.hpp"

#include <cmath>

#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

namespace {

constexpr double period_s = 600;
constexpr double swing = 1.5;
constexpr double max_spread = 2;

}  // namespace

Temperatures::Temperatures(std::uint64_t seed, double mean_c, const config::Geometry& geometry,
                           double begin_s, const std::vector<TemperatureStep>& steps)
    : mean_c_(mean_c) {
    const std::size_t in_module = geometry.du_count;
    const std::size_t units = geometry.bdm_count * in_module;
    for (const TemperatureStep& step : steps) {
        const std::size_t first = step.bdm * in_module;
        steps_.push_back({first, first + in_module - 1, begin_s + step.at_s, step.degrees});
    }
    for (std::size_t unit = 0; unit < units; ++unit) {
        Random random(seed, Purpose::calibration, unit);
        const double spread = max_spread * random.symmetric();
        units_.push_back({spread, random.uniform()});
    }
}

double Temperatures::celsius(std::size_t unit, double second) const {
    const double turn = second / period_s + units_[unit].phase;
    const double wave = 4 * std::abs(turn - std::floor(turn) - 0.5) - 1;
    double sum = mean_c_ + units_[unit].spread + swing * wave;
    for (const UnitStep& step : steps_) {
        if (unit >= step.first && unit <= step.last && second >= step.from_s) sum += step.degrees;
    }
    return sum;
}

double Temperatures::furthest_from(double reference) const {
    double most = std::abs(mean_c_ - reference) + max_spread + swing;
    for (const UnitStep& step : steps_)
        most += std::abs(step.degrees);
    return most;
}

}  // namespace petacq::sim
