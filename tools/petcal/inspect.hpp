// The contents of a calibration in figures.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::petcal {

/// Shapes, hash and statistics (docs/reference/configuration.md lists the members).
nlohmann::json inspect(const config::Geometry& geometry, const config::Calibration& calibration);
/// The same as text.
std::string inspect_text(const nlohmann::json& figures);

}  // namespace petacq::petcal
