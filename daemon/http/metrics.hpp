// The status document in the Prometheus text exposition format, version 0.0.4: docs/reference/http.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace petacq::daemon {

struct HttpStatistics;

inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// Values that the status document lacks are omitted, not zero. Accepts any document.
std::string daemon_metrics(const nlohmann::json& status);
/// Metrics of the HTTP server itself. `age_s` is the age of the status.
std::string http_metrics(const HttpStatistics& statistics, double age_s);

}  // namespace petacq::daemon
