// Translates the configuration, in the units of the operator, into the options of each stage, in theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/acquisition/acquisition.hpp"
#include "daemon/tracking/tracker_options.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// The frames that the scanner's boards send.
net::FrameCheck frame_check(const config::Configuration& configuration, const config::Scanner& scanner);

/// One for each receiving thread, in the order of the configuration. `foreign`: nullptr for petacqd's own
/// frames.
std::vector<net::ReceiverOptions> receiver_options(const config::Configuration& configuration,
                                                   const config::Scanner& scanner,
                                                   const std::shared_ptr<net::ForeignFormat>& foreign);

TrackerOptions tracker_options(const config::Configuration& configuration, const config::Scanner& scanner,
                               const config::Calibration& calibration);

/// Largest magnitude of a time offset of the calibration, in ticks.
std::uint64_t largest_offset(const config::Calibration& calibration);

SynchronyOptions synchrony_options(const config::Configuration& configuration,
                                   const config::Scanner& scanner);

AcquisitionOptions acquisition_options(const config::Configuration& configuration,
                                       const config::Scanner& scanner, const TrackerOptions& tracker);

}  // namespace petacq::daemon
