// The JSON Schemas as text, compiled into the library.
#pragma once

#include <string_view>

namespace petacq::config {

std::string_view petacqd_schema_text();
std::string_view scanner_schema_text();
std::string_view arrangement_schema_text();
std::string_view layout_schema_text();

}  // namespace petacq::config
