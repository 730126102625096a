// petctl doctor.
#pragma once

#include "daemon/control/client.hpp"

namespace petacq::petctl {

/// Listens for some seconds, and says what arrives, what is wrong with it and how to put it right. Returns
/// exit_status::has_problems if something does not work.
int doctor(daemon::ControlClient& client, double seconds, bool as_json);

}  // namespace petacq::petctl
