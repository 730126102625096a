// What the tracking of sources is to allow and to expect.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/tracking/time_guard.hpp"
#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

struct TrackerOptions {
    net::Framing framing = net::Framing::sequenced;
    std::vector<std::uint16_t> expected;          ///< sequenced: ids to wait for; empty: any
    std::vector<net::Endpoint> expected_senders;  ///< bare: likewise
    std::uint64_t max_disorder = 0;               ///< ticks
    std::uint64_t max_lag = 0;                    ///< ticks
    std::uint64_t max_jump = 0;                   ///< ticks
    std::uint32_t jump_confirmations = 3;
    std::int64_t source_timeout_ns = 0;
    double ticks_per_ns = 0;       ///< rate of the detector's clock; 0: unknown
    std::uint64_t max_offset = 0;  ///< ticks: largest magnitude of a time offset of the calibration
    /// Ticks past the newest single after which all singles are decided: pairs, delayeds, and the gammas of
    /// both.
    std::uint64_t flush_reach = 0;

    [[nodiscard]] TimeLimits time_limits() const { return {max_jump, max_disorder, jump_confirmations}; }
};

}  // namespace petacq::daemon
