// Draws the charts of a report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/petlm/nema/report.hpp"

namespace petacq::nema {

/// Why this program draws no pictures, if it does not.
std::optional<std::string> no_pictures_reason();
/// Writes the partial file of `file` (Outputs). Throws std::system_error, std::runtime_error when cairo
/// fails.
void draw(const Chart& chart, const std::filesystem::path& file);

}  // namespace petacq::nema
