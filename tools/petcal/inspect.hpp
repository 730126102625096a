// What a calibration holds, in figures.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/calibration.hpp"
#include "config/scanner.hpp"

namespace petacq::petcal {

/// Shapes, hash and statistics (docs/configuration.md lists the members).
nlohmann::json inspect(const config::Geometry& geometry, const config::Calibration& calibration);
/// The same for people.
std::string inspect_text(const nlohmann::json& figures);

}  // namespace petacq::petcal
