// The status as `petctl status` shows it: what an operator has to know, on one screen.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "tools/petctl/text/strip.hpp"

namespace petacq::petctl {

/// A summary has no more lines than this, however many sources, modules and problems there are.
inline constexpr std::size_t max_summary_lines = 25;

/// The strip, health with its reasons, the main rates, and one line for each of the rest. No line is longer
/// than `display.width`, but for commands to copy.
Lines status_summary(const nlohmann::json& status, const Display& display);

}  // namespace petacq::petctl
