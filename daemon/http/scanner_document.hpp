// The document /scanner: where the crystals are, for the map of the live page.
#pragma once

#include <string>

#include "config/scanner.hpp"

namespace petacq::daemon {

/// JSON; docs/reference/http.md has it field by field.
std::string scanner_document(const config::Scanner& scanner);

}  // namespace petacq::daemon
