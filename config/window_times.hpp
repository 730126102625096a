// Windows that the configuration gives in nanoseconds. Internal to config/.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petacq::config {

/// Replaces each NAME_ns of the sections "coincidence" and "gammas" by NAME_ticks. Only if there is one of
/// them, reads the scanner description, whose path must be absolute, for its tick. The document agrees with
/// the schema. Throws Error if both forms are given, or neither for a window.
void replace_window_times(nlohmann::json& document);

}  // namespace petacq::config
