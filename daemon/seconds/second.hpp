// What the detector and the pipeline did in one second of detector time: the input of corrections, of the
// monitoring of the detector, and of plots over time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gpu/interval_sums.hpp"
#include "gpu/randoms.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::daemon {

/// Seconds begin at multiples of a second. One in which a segment ends or begins is divided there.
struct Second {
    gpu::TickRange range;          ///< ticks
    double length_s = 0;           ///< the same in seconds
    gpu::IntervalSums sums;        ///< over the groups whose opener lies in it
    gpu::ExpectedRandoms randoms;  ///< random pairs to be expected among its prompts
    double load = 0;     ///< annihilations in a window besides that of the opener (gpu/window_load.hpp)
    double pile_up = 1;  ///< pairs lost to multiples: gpu::pile_up_factor(); NaN: unknown
    double delayeds_weight = 0;  ///< random prompts for each delayed; 0: no delayeds
    double lost = std::numeric_limits<double>::quiet_NaN();  ///< datagrams; NaN: unknown
    double late = std::numeric_limits<double>::quiet_NaN();  ///< frames below the watermark; NaN: unknown
    std::vector<double> temperature_C;                       ///< [bdm] mean; NaN or empty: unknown
    std::vector<double> dead_time;  ///< [bdm] ticks in which the module was blind; NaN or empty: unknown
};

/// Sums over seconds. A difference of two states describes the time between them.
struct SecondsTotal {
    double length_s = 0;
    std::uint64_t prompts = 0;
    double randoms = 0;            ///< expected among these
    double weighted_delayeds = 0;  ///< the same from the delayeds

    void add(const Second& second);
    friend SecondsTotal operator-(SecondsTotal a, const SecondsTotal& b);
};

}  // namespace petacq::daemon
