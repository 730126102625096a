// The status document in the Prometheus text exposition format, version 0.0.4. docs/http.md lists the
// metrics.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace petacq::daemon {

struct HttpStatistics;

inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// What the status document knows; what it does not know is left out, not zero. Any document will do.
std::string daemon_metrics(const nlohmann::json& status);
/// The HTTP server itself. `age_s`: of the status.
std::string http_metrics(const HttpStatistics& statistics, double age_s);

}  // namespace petacq::daemon
