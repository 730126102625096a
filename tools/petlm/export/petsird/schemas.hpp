// What begins every file of a version of PETSIRD: its schema, as the package writes it and readers expect it.
#pragma once

#include <string_view>

#include "tools/petlm/export/petsird/options.hpp"

namespace petacq::petsird {

std::string_view schema_of(Version version);

}  // namespace petacq::petsird
