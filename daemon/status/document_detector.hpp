// The parts of the status document about the detector: sources, modules, synchrony and dead time.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/status/reading.hpp"
#include "net/modules.hpp"

namespace petacq::daemon {

/// "0-5,7"
std::string ranges_of(const net::Modules& bdms);
nlohmann::json make_sources(const Observation& seen);
nlohmann::json make_unknown_sources(const Observation& seen);
nlohmann::json make_modules(const Observation& seen);
nlohmann::json make_synchrony(const Observation& seen);
nlohmann::json make_dead_time(const Observation& seen);
/// Share of hits missed by units that count `rates` (1/s) and are blind for `dead_time_s` after each hit:
/// 1 - measured / true, with true = measured / (1 - measured * dead_time_s) for each unit. 1 if a unit counts
/// as fast as it can.
double dead_time_fraction(const std::vector<double>& rates, double dead_time_s);

/// Mean over a module since the previous histograms, degrees C; absent without frames. `bdm` is below
/// bdm_count.
std::optional<double> module_temperature(const AcquisitionSnapshot& now, const config::Geometry& geometry,
                                         std::uint32_t bdm);

}  // namespace petacq::daemon
