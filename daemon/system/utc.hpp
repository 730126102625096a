// UTC times as text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// "2026-11-20T18:45:00.123Z"
std::string utc_text(std::chrono::system_clock::time_point time);
/// In a format of strftime, at most 63 characters long, in the C locale.
std::string utc_text(std::chrono::system_clock::time_point time, const char* format);

/// The time of an ISO 8601 text with a date of the years 1970 to 2199, "T", a time and its distance from UTC:
/// "2026-11-20T18:45:00Z", "2026-11-20T18:45:00.123Z", "2026-11-20T19:45+01:00". Absent for other text.
std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text);

}  // namespace petacq::daemon
