#include "tools/petlm/lifetime/decayed.hpp"

#include <cmath>
#include <numbers>

namespace petacq::lifetime {
namespace {

/// ln of the normal distribution function.
double log_normal_below(double x) {
    if (x > -30) return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
    const double inverse = 1 / (x * x);  // asymptotic series: erfc() underflows
    return -x * x / 2 - std::log(-x * std::sqrt(2 * std::numbers::pi)) +
           std::log1p(inverse * (-1 + inverse * (3 - 15 * inverse)));
}

}  // namespace

double decayed_before(double t, double lifetime, double sigma) {
    const double x = t / sigma;
    const double ratio = sigma / lifetime;
    const double later = std::exp(ratio * ratio / 2 - t / lifetime + log_normal_below(x - ratio));
    return 0.5 * std::erfc(-x / std::numbers::sqrt2) - later;
}

}  // namespace petacq::lifetime
