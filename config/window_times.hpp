// Windows that the configuration gives in nanoseconds. Internal to config/.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petacq::config {

/// Replaces /coincidence/window_ns and delay_ns by window_ticks and delay_ticks. Only if there is one of
/// them, reads the scanner description, whose path must be absolute, for its tick. The document agrees with
/// the schema. Throws Error if both forms are given, or neither for the window.
void replace_window_times(nlohmann::json& document);

}  // namespace petacq::config
