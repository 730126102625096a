// Units for which a step of the calibration cannot be derived.
#pragma once

#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"

namespace petacq::petcal {

/// `refused`: by unit, why it cannot be derived; empty: it can. Throws config::Error with the first reasons
/// when there are any; with `partial` only when no unit is left, and prints them otherwise.
void check_refusals(const config::Geometry& geometry, const std::vector<std::string>& refused, bool partial);

}  // namespace petacq::petcal
