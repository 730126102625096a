// Whether all modules can have coincidences.
#pragma once

#include "config/scanner/scanner.hpp"
#include "daemon/preflight/finding.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::daemon {

/// A warning if some modules have no good pair with any other.
Findings check_partners(const config::Scanner& scanner, const gpu::CoincidenceRules& rules);

}  // namespace petacq::daemon
