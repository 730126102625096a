// The part of the status document about the other host of a pair.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/status/reading.hpp"

namespace petacq::daemon {

/// null without one
nlohmann::json make_peer(const Reading& now);

}  // namespace petacq::daemon
