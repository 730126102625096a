// The runs on disk as a table.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/petctl/text.hpp"

namespace petacq::petctl {

/// From an array of what the control method `runs` says of each, in its order.
Lines runs_lines(const nlohmann::json& runs);

}  // namespace petacq::petctl
