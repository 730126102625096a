// Whether numbers that no BDM has make the tables large.
#pragma once

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/preflight/finding.hpp"

namespace petacq::daemon {

/// A warning if much of the calibration is room for BDMs that do not exist: tables have a row for every
/// number up to the highest.
Findings check_gaps(const config::Scanner& scanner, const config::Calibration& calibration);

}  // namespace petacq::daemon
