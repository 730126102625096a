// Whether delayed gammas come soon enough to tell which triples are there by chance.
#pragma once

#include "config/configuration.hpp"
#include "daemon/preflight/finding.hpp"

namespace petacq::daemon {

/// A warning if delayed gammas come more than a second after their pairs: the last pairs of a run have none.
Findings check_gamma_delay(const config::Configuration& configuration, double tick_ps);

}  // namespace petacq::daemon
