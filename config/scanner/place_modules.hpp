// Makes the modules of a scanner from the items of `modules` in the long form of its description.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::config {

/// `items`: with their defaults. Throws Error with the path of the key for an item that names no type or not
/// exactly one placement, for more than 65,536 modules or max_crystals crystals, and for modules that
/// overlap. REQUIRES: at most max_crystals crystals in each type.
std::vector<Module> place_modules(const nlohmann::json& items, const std::vector<ModuleType>& types);

}  // namespace petacq::config
