#include "tools/petsim/detector/temperature.hpp"

#include <cmath>

#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

namespace {

constexpr double period_s = 600;
constexpr double swing = 1.5;
constexpr double most_spread = 2;

}  // namespace

Temperatures::Temperatures(std::uint64_t seed, double mean_c, std::size_t units) : mean_c_(mean_c) {
    for (std::size_t unit = 0; unit < units; ++unit) {
        Random random(seed, Purpose::calibration, unit);
        const double spread = most_spread * random.symmetric();
        units_.push_back({spread, random.uniform()});
    }
}

double Temperatures::celsius(std::size_t unit, double second) const {
    const double turn = second / period_s + units_[unit].phase;
    const double wave = 4 * std::abs(turn - std::floor(turn) - 0.5) - 1;
    return mean_c_ + units_[unit].spread + swing * wave;
}

double Temperatures::furthest_from(double reference) const {
    return std::abs(mean_c_ - reference) + most_spread + swing;
}

}  // namespace petacq::sim
