// From the configuration, in the operator's units, to the options of each stage, in theirs.
#pragma once

#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/acquisition.hpp"
#include "daemon/source_tracker.hpp"
#include "gpu/pipeline.hpp"
#include "net/receiver.hpp"

namespace petacq::daemon {

/// Ticks in `seconds` of detector time, rounded to the nearest.
std::uint64_t ticks_of(double seconds, const config::Scanner& scanner);

net::Framing framing_of(const config::Configuration& configuration);

/// One per thread that receives, in the order of the configuration.
std::vector<net::ReceiverOptions> receiver_options(const config::Configuration& configuration);

gpu::PipelineOptions pipeline_options(const config::Configuration& configuration,
                                      const config::Scanner& scanner);

TrackerOptions tracker_options(const config::Configuration& configuration, const config::Scanner& scanner,
                               const config::Calibration& calibration);

AcquisitionOptions acquisition_options(const config::Configuration& configuration,
                                       const TrackerOptions& tracker);

}  // namespace petacq::daemon
