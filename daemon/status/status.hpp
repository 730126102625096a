// The status document: a view of a reading. docs/reference/status.md has it field by field. document_*.hpp
// make its larger parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

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

/// The number, or null.
nlohmann::json number_if(bool known, double value);
/// Growth of a counter per second. 0 if no time passed or the counter decreased.
double rate(std::uint64_t now, std::uint64_t before, double seconds);

struct RateSetting {
    bool delayeds = false;  ///< whether the pipeline searches for delayeds
    std::optional<double> scatter_fraction;
    std::string scatter_fraction_from;  ///< what the operator says of it
    bool triples = false;               ///< whether the pipeline searches for triples
};
/// `rates` and `average`: all over the time between the two states. `measured`: seconds from which the ratios
/// of randoms to singles and to delayeds are taken.
nlohmann::json make_rates(const AcquisitionSnapshot& now, const AcquisitionSnapshot& before,
                          const RateSetting& setting, const SecondsTotal& measured);

}  // namespace petacq::daemon
