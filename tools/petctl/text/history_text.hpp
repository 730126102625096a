// What happened, for people: the answer to the method `history` in the order of time.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// A time for the method `history`: one of ISO 8601, as it is, or so long before `now` ("90min", "12h",
/// "2d"). Throws config::Error, which names `option`, for other text.
std::string history_time(const std::string& option, const std::string& text,
                         std::chrono::system_clock::time_point now);

/// A line for each event and for the rates of each part of the time, of which there are at most about 30.
/// Times are UTC, and beside it those of the local zone if it is another one.
Lines history_lines(const nlohmann::json& answer);

/// The same of several hosts, {"hosts": {name: answer or {"failure"}}}, with a column that names them, and
/// the failures at the end.
Lines group_history_lines(const nlohmann::json& group);

/// The answer to the method `mark` as one line, with its end.
std::string mark_text(const nlohmann::json& answer);

}  // namespace petacq::petctl
