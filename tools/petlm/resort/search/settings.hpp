// The configuration with which the coincidences of runs are found again.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/configuration.hpp"
#include "tools/petlm/resort/search/options.hpp"

namespace petacq::petlm {

/// The configuration of the run with the given settings replaced, for pipelines of one thread. Throws
/// UsageError for an energy window that exceeds that of the saved singles, config::Error.
config::Configuration resort_configuration(const nlohmann::json& run, const ResortOptions& options,
                                           std::uint32_t slice_singles);

/// The options with windows and interval in ticks, those of the scanner in run.json. Throws UsageError for a
/// time that is no number, negative or too large.
ResortOptions in_ticks(ResortOptions options, const nlohmann::json& run);

}  // namespace petacq::petlm
