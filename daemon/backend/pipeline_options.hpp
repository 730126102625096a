// Translates the configuration, in the units of the operator, into the options of the pipeline, in its own.
#pragma once

#include <cstddef>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// By default the CPU back-end leaves cores to the threads on either side of it: `producers` threads that
/// fill batches, the acquisition and the list-mode writers.
gpu::PipelineOptions pipeline_options(const config::Configuration& configuration,
                                      const config::Scanner& scanner, std::size_t producers);

gpu::CoincidenceRules coincidence_rules(const config::Configuration& configuration);
gpu::CoincidenceRules coincidence_rules(const config::Coincidence& coincidence);
gpu::GammaRules gamma_rules(const config::Gammas& gammas);

}  // namespace petacq::daemon
