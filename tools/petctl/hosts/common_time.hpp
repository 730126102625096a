// A detector time that lies ahead on all hosts, so that they start and stop together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/hosts/group.hpp"

namespace petacq::petctl {

/// The status of all hosts, and how long the slowest of them took to answer.
struct TimedStatus {
    std::vector<HostAnswer> answers;
    double seconds = 0;

    /// Asks these hosts.
    static TimedStatus of(HostGroup& group, const std::vector<std::string>& hosts);
};

/// Ticks: the latest watermark, and a margin in which all hosts can be told: half a second and twice the time
/// that the slowest took to answer. Absent if no host tells its watermark and its tick.
std::optional<std::uint64_t> time_ahead(const TimedStatus& status);
/// Above 0 and finite. Absent if no host tells it.
std::optional<double> tick_ps(const TimedStatus& status);
/// Ticks in `seconds`; at least 1. Absent if no host tells its tick.
std::optional<std::uint64_t> ticks_in(double seconds, const TimedStatus& status);

}  // namespace petacq::petctl
