// The status again and again until Ctrl-C.
#pragma once

#include "daemon/control_client.hpp"

namespace petacq::petctl {

/// `status --watch`: each status drawn over the one before on a terminal, a line each elsewhere.
int watch_status(daemon::ControlClient& client, bool as_json);
/// `watch`: the dashboard on a terminal; elsewhere the lines of watch_status. Both throw ControlUnavailable
/// when the daemon goes away, with the terminal as it was.
int watch_dashboard(daemon::ControlClient& client);

}  // namespace petacq::petctl
