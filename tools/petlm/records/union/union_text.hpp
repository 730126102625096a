// What run.json of a union says, in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace petacq::petlm {

/// Names and values: "hits", "120 in several runs, 3 only in /a/r7, 5 only in /b/r7"; then what all runs lack
/// ("lost by all"), and runs that were not whole. `run`: run.json. Empty unless it is that of a union.
std::vector<std::pair<std::string, std::string>> union_lines(const nlohmann::json& run);

}  // namespace petacq::petlm
