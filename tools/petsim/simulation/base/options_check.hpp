// What the checks of options share.
#pragma once

#include <string>

#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

/// Throw std::invalid_argument with the name of the option, what was found and what was expected.
[[noreturn]] void refuse(const std::string& what, const std::string& found, const std::string& expected);
void within(const char* what, double v, double low, double high);
/// The shortest text that reads back to the same number.
std::string text(double v);

void check_activity(const Options& options, const config::Scanner& scanner);
void check_movement(const Options& options, const config::Scanner& scanner);
void check_tags(const Options& options, std::size_t sources, const config::Scanner& scanner);

nlohmann::json to_json(const ActivitySource& source);
nlohmann::json to_json(const ScatteringObject& object);
nlohmann::json to_json(const Motion& motion);
nlohmann::json to_json(const Tags& tags);
/// The value of the key "motion" of a source; `path`: of the value, for errors.
Motion motion_from_json(const nlohmann::json& document, const std::string& path);

}  // namespace petacq::sim
