// The configuration with which the coincidences of runs are found again.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/configuration.hpp"
#include "tools/petlm/resort/search/options.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// The configuration of the run, the first of the input, with the given settings replaced, for pipelines of
/// one thread. Throws UsageError for an energy window that exceeds that of the saved singles, and as
/// check_energies() does, config::Error.
config::Configuration resort_configuration(const nlohmann::json& run, const ResortOptions& options,
                                           std::uint32_t slice_singles);

/// Throws UsageError that names the run if the search needs energies which the singles of a run do not tell.
void check_energies(const Inputs& inputs, const config::Configuration& configuration);

/// The options with windows and interval in ticks, those of the scanner in run.json. Throws UsageError for a
/// time that is no number, negative or too large.
ResortOptions in_ticks(ResortOptions options, const nlohmann::json& run);

}  // namespace petacq::petlm
