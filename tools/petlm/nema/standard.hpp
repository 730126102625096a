// What a test of the standard found.
#pragma once

#include "tools/petlm/results/report.hpp"

namespace petacq::nema {

inline constexpr const char* standard = "NEMA NU 4-2008";

using results::Cell;
using results::Chart;
using results::Figure;
using results::Report;
using results::ResultTable;
using results::text_of;
using results::unknown;

}  // namespace petacq::nema
