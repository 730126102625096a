// How much the energy factors of crystals differ within their detector units.
#pragma once

#include "config/calibration.hpp"

namespace petacq::config {

/// Relative standard deviation of the energy factors at 511 keV of crystals in one unit: from the median
/// difference of crystals that follow each other in the table, so that neither units of other gain nor a few
/// bad crystals count. A hit that lies in several crystals gets the factor of one of them, and so another
/// energy than it has. 0 if no factor is known.
double factor_spread(const Calibration& calibration);

}  // namespace petacq::config
