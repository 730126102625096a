// The status document as text for people. Fields that are missing show as "-", unknown ones are not shown.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petctl/text.hpp"

namespace petacq::petctl {

/// Aligned sections, over several lines.
Lines status_lines(const nlohmann::json& status);
/// The same on one line, without line end, for output that goes into a file.
std::string status_line(const nlohmann::json& status);
/// One line about a run that was stopped, from the answer to `stop`.
std::string stop_line(const nlohmann::json& result);
/// What went wrong with that run, a line each: its failure, a ledger that does not close. Empty: nothing.
std::vector<std::string> stop_problems(const nlohmann::json& result);

}  // namespace petacq::petctl
