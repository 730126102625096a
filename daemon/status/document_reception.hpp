// `reception` of the status document: what the daemon expects of the boards, and what arrives. For petctl
// doctor.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/status/reading.hpp"

namespace petacq::daemon {

nlohmann::json make_reception(const Observation& seen);

}  // namespace petacq::daemon
