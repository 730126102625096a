// How long the buffers of reception last when nothing is taken out of them.
#pragma once

#include "config/configuration.hpp"

namespace petacq::daemon {

struct BufferTimes {
    double process_s = 0;  ///< the process stands still; if the kernel grants the socket buffers
    double disk_s = 0;     ///< the disk or the pipeline stands still
};

/// At this rate over all sockets, evenly spread, in standard datagrams (1472 bytes).
BufferTimes buffer_times(const config::Configuration& configuration, double frames_per_s);

/// The rate at which a slice is full when it is submitted for its age.
double slice_rate(const config::Configuration& configuration);

}  // namespace petacq::daemon
