// The parts of the status document that take some arithmetic. Internal to the status.
#pragma once

#include <nlohmann/json.hpp>

#include "daemon/status.hpp"

namespace petacq::daemon {

/// Growth of a counter per second. 0 over no time, and for a counter that went back.
double rate(std::uint64_t now, std::uint64_t before, double seconds);

// status_rates.cpp
struct RateSetting {
    bool delayeds = false;  ///< are looked for
    double scatter_fraction = 0;
};
/// `rates` and `average`.
nlohmann::json make_rates(const AcquisitionSnapshot& now, const AcquisitionSnapshot& before,
                          const RateSetting& setting, std::optional<double> expected_randoms);

// status_detector.cpp
nlohmann::json make_sources(const StatusInput& in);
nlohmann::json make_modules(const StatusInput& in);
nlohmann::json make_dead_time(const StatusInput& in);
/// Share of hits that are missed by units that count `rates` (1/s) and are blind for `dead_time_s` after each
/// hit: 1 - measured / true, with true = measured / (1 - measured * dead_time_s) for each unit. 1 when one
/// counts as fast as it can.
double dead_time_fraction(const std::vector<double>& rates, double dead_time_s);

}  // namespace petacq::daemon
