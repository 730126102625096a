// Views of a reading: the status document and the problems that health is made of. docs/reference/status.md
// has the document field by field.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/status/health.hpp"
#include "daemon/status/reading.hpp"
#include "net/base/cores.hpp"

namespace petacq::daemon {

/// The constant facts about the daemon, and the time since its start.
struct Installation {
    double uptime_s = 0;
    std::vector<std::uint16_t> ports;  ///< of every socket, in the order of the configuration
    std::vector<net::Cores> cores;     ///< likewise, on which its receiver runs; empty: any
    std::size_t batches = 0;
    std::uint64_t pool_bytes = 0;
    std::uint64_t pipeline_bytes = 0;
    std::string scanner_sha256;  ///< of the description without its sources
};

nlohmann::json make_status(const Observation& seen, const Installation& installation);

/// Nothing has arrived if no frame has for this long.
inline constexpr std::chrono::seconds no_data_after{5};
/// `recording`: whether data are being recorded now, for the first glance.
nlohmann::json make_recording(const Observation& seen);

// Parts of the document that take some arithmetic.

/// The number, or null.
nlohmann::json number_if(bool known, double value);
/// Growth of a counter per second. 0 if no time passed or the counter decreased.
double rate(std::uint64_t now, std::uint64_t before, double seconds);

struct RateSetting {
    bool delayeds = false;  ///< whether the pipeline searches for delayeds
    double scatter_fraction = 0;
};
/// `rates` and `average`: all over the time between the two states. `measured`: seconds from which the ratios
/// of randoms to singles and to delayeds are taken.
nlohmann::json make_rates(const AcquisitionSnapshot& now, const AcquisitionSnapshot& before,
                          const RateSetting& setting, const SecondsTotal& measured);

/// "0-5,7"
std::string ranges_of(const std::bitset<256>& bdms);
nlohmann::json make_sources(const Observation& seen);
nlohmann::json make_unknown_sources(const Observation& seen);
nlohmann::json make_reception(const Observation& seen);
nlohmann::json make_modules(const Observation& seen);
nlohmann::json make_synchrony(const Observation& seen);
nlohmann::json make_dead_time(const Observation& seen);
/// Share of hits missed by units that count `rates` (1/s) and are blind for `dead_time_s` after each hit:
/// 1 - measured / true, with true = measured / (1 - measured * dead_time_s) for each unit. 1 if a unit counts
/// as fast as it can.
double dead_time_fraction(const std::vector<double>& rates, double dead_time_s);

// Health.

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
/// Whether any source has been heard since the daemon started.
/// Frames of the last second that came in datagrams without any valid frame.
std::uint64_t invalid_frames_arrived(const Observation& seen);
bool anything_heard(const AcquisitionSnapshot& now);

/// Mean over a module since the previous histograms, degrees C; absent without frames. `bdm` is below
/// bdm_count.
std::optional<double> module_temperature(const AcquisitionSnapshot& now, const config::Geometry& geometry,
                                         std::uint32_t bdm);

}  // namespace petacq::daemon
