// When records were taken, and for how long.
#pragma once

#include <optional>
#include <string>

#include "tools/petlm/records/source.hpp"

namespace petacq::corrections {

struct MeasuredTime {
    double seconds = 0;                    ///< during which pairs were recorded; 0: unknown
    std::optional<std::string> start_utc;  ///< of the run, ISO 8601
};
/// Of a run directory from its start to its stop, of a file of petlm gate or cut as it says. The length of
/// any other file is not known: it may be a part of its run.
MeasuredTime measured_time(const petlm::ExportSource& source, double tick_ps);

}  // namespace petacq::corrections
