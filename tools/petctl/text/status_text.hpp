// The documents of the daemon as text for people. Missing fields show as "-"; unknown ones do not.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petctl/text/strip.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// The strip, and the whole status in aligned sections.
Lines status_lines(const nlohmann::json& status, const Display& display);
/// The same on one line without a line end, for output to a file.
std::string status_line(const nlohmann::json& status);
/// Whether the run of this answer to `stop` never began, so that nothing is left of it.
bool never_began(const nlohmann::json& result);
/// One line about the stopped run, from the answer to `stop`.
std::string stop_line(const nlohmann::json& result);
/// The problems of that run, one per line: a failure, a ledger that does not close.
std::vector<std::string> stop_problems(const nlohmann::json& result);

/// The ledger with its identities, from {"run", "state", "ledger"}. Counters that are missing show as "-".
Lines ledger_lines(const nlohmann::json& answer);
/// From the array of runs in the answer of the control method `runs`, in its order.
Lines runs_lines(const nlohmann::json& runs);

}  // namespace petacq::petctl
