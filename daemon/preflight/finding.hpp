// A finding of petacqd --check: its subject, how bad it is, and how to put it right.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace petacq::daemon {

enum class Level : std::uint8_t {
    good,
    note,     ///< could not be tested, or is as it should be only under a condition
    warning,  ///< it works, but may lose data or does not do all that it should
    problem,  ///< it does not work
};

struct Finding {
    Level level;
    std::string subject;  ///< "data directory"
    std::string text;
    std::string fix;  ///< a command, or what to change; "" if there is nothing to do
};

using Findings = std::vector<Finding>;

/// A line for each warning and problem, or with `all` for each finding, another one with its fix, and a count
/// at the end.
std::string report(const Findings& findings, bool all, bool colour);
/// {"findings": [{"level", "subject", "text", "fix"}], "problems", "warnings"}
nlohmann::json to_json(const Findings& findings);

bool any_problem(const Findings& findings);

}  // namespace petacq::daemon
