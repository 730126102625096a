// UTC times as text.
#pragma once

#include <chrono>
#include <string>

namespace petacq::daemon {

/// "2026-11-20T18:45:00.123Z"
std::string utc_text(std::chrono::system_clock::time_point time);
/// In a format of strftime, at most 63 characters long, in the C locale.
std::string utc_text(std::chrono::system_clock::time_point time, const char* format);

}  // namespace petacq::daemon
