// The activity at the start of a run from the decays in it.
#pragma once

#include <cmath>
#include <numbers>

#include "config/nuclides.hpp"

namespace petacq::corrections {

/// The activity at the start of a run divided by its mean over the run: x / (1 - exp(-x)), where x is the
/// duration times ln 2 / half-life.
inline double decay_factor(const config::Nuclide& nuclide, double duration_s) {
    const double x = duration_s * std::numbers::ln2 / nuclide.half_life_s;
    return x > 0 ? x / -std::expm1(-x) : 1;
}

}  // namespace petacq::corrections
