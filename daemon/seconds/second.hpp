// What a run was like in one second of detector time: the input of its corrections, and of plots over time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "config/geometry.hpp"
#include "gpu/coincidence_rules.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/randoms_weights.hpp"

namespace petacq::daemon {

/// Seconds of detector time start at multiples of one second. The first and the last one of a run are shorter
/// if the run starts or stops within them.
struct Second {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

    std::uint64_t start = 0;   ///< ticks
    std::uint64_t length = 0;  ///< ticks
    gpu::IntervalSums sums;    ///< over the groups whose opener lies in the second
    gpu::RandomsWeights weights;
    double randoms = unknown;  ///< random coincidences to be expected among the prompts, noise-free estimate
    double lost = unknown;     ///< datagrams lost
    std::uint64_t late = 0;    ///< frames that came late
    std::vector<double> temperature_C;  ///< [bdm] mean; NaN: unknown
    std::vector<double> dead_time;      ///< [bdm] ticks in which the module was blind; NaN: unknown

    /// A second without anything known about it.
    static Second none(const config::Geometry& geometry);
    /// Sets start, length, and the weights that follow from the sums.
    void set_time(std::uint64_t start_ticks, std::uint64_t length_ticks, const gpu::CoincidenceRules& rules);
};

}  // namespace petacq::daemon
