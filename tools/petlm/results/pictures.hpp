// Draws the charts of a report.
#pragma once

#include <string>

#include "tools/petlm/results/report.hpp"

namespace petacq::results {

/// The contents of a PNG file. Only with cairo (report::with_cairo). Throws std::runtime_error when it fails.
std::string png_of(const Chart& chart);

}  // namespace petacq::results
