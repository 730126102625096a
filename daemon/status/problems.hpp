// What is wrong at one moment. LastingReasons makes the reasons of health of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/run/problem.hpp"
#include "daemon/status/reading.hpp"

namespace petacq::daemon {

/// A threshold that has been crossed must be crossed back by a margin: `seen.health` says which have been.
std::vector<Problem> find_problems(const Observation& seen);
/// Those among them that single sources have.
std::vector<Problem> find_source_problems(const Observation& seen);
/// Those of the kernel's network counters.
std::vector<Problem> find_network_problems(const Observation& seen);
/// How many of the datagrams that sockets have `dropped` lately found no room in the buffer. Datagrams with
/// wrong checksums are among the drops, too.
std::uint64_t dropped_for_room(const Observation& seen, std::uint64_t dropped);

/// The id of the source, or its address with bare framing.
std::string source_name(const Observation& seen, const SourceStatus& source);
/// Frames of the last second that came in datagrams without any valid frame.
std::uint64_t invalid_frames_arrived(const Observation& seen);
/// Whether any source has been heard since the daemon started.
bool anything_heard(const AcquisitionSnapshot& now);

}  // namespace petacq::daemon
