// Reads the long form of a scanner description.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

/// Whether the description has the long form.
bool is_long_form(const nlohmann::json& document);

/// Everything but the sources. Throws Error with the path of the key, what is expected there, and what was
/// found. The document gets its defaults.
Scanner scanner_of_long_form(nlohmann::json& document);

}  // namespace petacq::config
