// The data directory: may it be written to, on which disk is it, how fast is that, and how long does it last.
#pragma once

#include <filesystem>

#include "config/configuration.hpp"
#include "daemon/preflight/finding.hpp"

namespace petacq::daemon {

struct FrameRate {
    double per_s;
    bool asked;  ///< by the operator; otherwise a guess, by which nothing is judged
};

/// The largest rate at which a run can write: every frame is a single, every two singles are a pair, and
/// blocks are not compressed.
double max_bytes_per_s(const config::Configuration& configuration, double frames_per_s);

/// Bytes per second that reach the disk: writes and syncs a file of at most 256 MiB, for about two seconds at
/// most, and removes it. Throws std::system_error.
double measure_write_speed(const std::filesystem::path& directory);

/// `rate`: that the disk must keep up with. With a daemon running, or no room, nothing is written.
Findings check_disk(const config::Configuration& configuration, const FrameRate& rate, bool daemon_running);

}  // namespace petacq::daemon
