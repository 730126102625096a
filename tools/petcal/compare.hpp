// petcal compare: how two calibrations differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::petcal {

/// Shares of positions with another crystal, differences of energies at 511 keV and of time offsets
/// (docs/reference/configuration.md lists the members).
nlohmann::json compare(const config::Scanner& scanner, const config::Calibration& a,
                       const config::Calibration& b);
/// The same as text.
std::string compare_text(const nlohmann::json& figures);

}  // namespace petacq::petcal
