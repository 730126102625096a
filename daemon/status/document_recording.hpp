// `recording` of the status document: are data being recorded now, and if not, why?
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>

#include "daemon/status/reading.hpp"

namespace petacq::daemon {

/// Nothing has arrived if no frame has for this long.
inline constexpr std::chrono::seconds no_data_after{5};
/// Whether that is so.
bool silent(const Reading& now);
/// For the first glance.
nlohmann::json make_recording(const Observation& seen);

}  // namespace petacq::daemon
